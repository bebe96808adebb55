"""Protocol buffers, as far as TensorBoard's messages need them: fields of numbers, bytes and messages. Knows no
message.

A field is its number and a value; the type of the value says how it is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(n: int) -> bytes:
    """An integer in groups of seven bits, the lowest first; negative ones as 64 bits."""
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def integer(number: int, value: int) -> bytes:
    """A field of int32, int64, bool or an enumeration; the default is left out."""
    return varint(number << 3) + varint(int(value)) if value else b""


def double(number: int, value: float) -> bytes:
    """A field of double."""
    return varint(number << 3 | 1) + struct.pack("<d", value) if value or value != value else b""


def single(number: int, value: float) -> bytes:
    """A field of float, which is written even if it is 0: it stands in a choice of several."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def data(number: int, value: bytes | str) -> bytes:
    """A field of bytes, a string, or a message that is written already."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def doubles(number: int, values: Iterable[float]) -> bytes:
    """A field of several doubles, packed."""
    given = list(values)
    return data(number, struct.pack(f"<{len(given)}d", *given)) if given else b""


def integers(number: int, values: Iterable[int]) -> bytes:
    """A field of several integers, packed."""
    return data(number, b"".join(varint(int(v)) for v in values))
