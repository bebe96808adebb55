"""`votive.backends.xnnpack`: XNNPACK is not used."""

from __future__ import annotations

enabled = False  # whether XNNPACK computes


def is_available() -> bool:
    """Whether XNNPACK computes: no.

    >>> votive.backends.xnnpack.is_available()
    False
    """
    return False
