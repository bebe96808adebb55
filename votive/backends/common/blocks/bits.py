"""Small integers in bytes: fields of 1, 2, 4 and 6 bits, taken out and put in. Arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def unpack(packed: Array, bits: int, run: int) -> Array:
    """The fields of `bits` bits of each row of bytes, as one row of small integers.

    ggml stores planes: the lowest fields of `run` bytes are `run` neighbours, the next higher
    fields of the same bytes are the next ones, and so on; then come the next `run` bytes.

    >>> from votive.backends.common.blocks.bits import unpack
    >>> unpack(np.array([[0x21, 0x43]], np.uint8), 4, 2)
    array([[1, 3, 2, 4]], dtype=uint8)
    """
    planes = 8 // bits
    rows = packed.reshape(len(packed), -1, 1, run)
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(planes, 1)
    fields = rows >> shifts
    fields &= np.uint8((1 << bits) - 1)
    return fields.reshape(len(packed), -1)


def pack(values: Array, bits: int, run: int) -> Array:
    """The inverse of `unpack`; higher bits of the values are cut off.

    >>> from votive.backends.common.blocks.bits import pack
    >>> pack(np.array([[1, 3, 2, 4]], np.uint8), 4, 2)
    array([[33, 67]], dtype=uint8)
    """
    planes = 8 // bits
    fields = values.astype(np.uint8) & np.uint8((1 << bits) - 1)
    fields = fields.reshape(len(values), -1, planes, run)
    shifts = np.arange(0, 8, bits, dtype=np.uint8).reshape(planes, 1)
    return np.bitwise_or.reduce(fields << shifts, axis=2).reshape(len(values), -1)


def unpack_k_scales(packed: Array) -> tuple[Array, Array]:
    """Eight scales and eight minima of 6 bits each from the 12 bytes of Q4_K and Q5_K.

    Bytes 0..3 hold scales 0..3, bytes 4..7 minima 0..3, each below two bits of scale (minimum)
    4..7, whose other four bits are the low (high) half of bytes 8..11.
    """
    a, b, c = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([a & 63, (c & 15) | ((a >> 6) << 4)], axis=1)
    minima = np.concatenate([b & 63, (c >> 4) | ((b >> 6) << 4)], axis=1)
    return scales, minima


def pack_k_scales(scales: Array, minima: Array) -> Array:
    """The inverse of `unpack_k_scales`."""
    a = scales[:, :4] | ((scales[:, 4:] >> 4) << 6)
    b = minima[:, :4] | ((minima[:, 4:] >> 4) << 6)
    c = (scales[:, 4:] & 15) | ((minima[:, 4:] & 15) << 4)
    return np.concatenate([a, b, c], axis=1).astype(np.uint8)


def unpack_q3_scales(packed: Array) -> Array:
    """The sixteen scales of Q3_K, -32..31: four low bits in 8 bytes, two high bits in 4."""
    low = unpack(packed[:, :8], 4, 8)
    high = unpack(packed[:, 8:], 2, 4)
    return (low | (high << 4)).astype(np.int8) - np.int8(32)


def pack_q3_scales(scales: Array) -> Array:
    """The inverse of `unpack_q3_scales`."""
    raw = (scales.astype(np.int8) + np.int8(32)).astype(np.uint8)
    return np.concatenate([pack(raw, 4, 8), pack(raw >> 4, 2, 4)], axis=1)
