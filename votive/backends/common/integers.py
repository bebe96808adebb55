"""Integers of Python as the words of machines."""

from __future__ import annotations


def word64(v: int) -> int:
    """The 64 bits of an integer that int64 or uint64 can hold."""
    if not -(1 << 63) <= v < 1 << 64:
        raise OverflowError(f"the integer {v} does not fit into 64 bits.")
    return v & ((1 << 64) - 1)
