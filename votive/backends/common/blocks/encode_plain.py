"""float32 to the simple block types: round to the nearest code of a fixed grid per block.

Codes and scales are, bit for bit, those of ggml's reference quantizers. Each function takes
(blocks, elements) and returns records. Knows arrays, not files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import blocks
from .bits import Array, pack
from .decode import FP4_VALUES


def records(name: str, **fields: Array) -> Array:
    first = next(iter(fields.values()))
    out = np.empty(len(first), blocks.by_name(name).np)
    for field, values in fields.items():
        out[field] = values
    return out


def inverse(scale: Array) -> Array:
    """1/scale, and 0 where that is no number: such blocks are all zero at half precision."""
    with np.errstate(divide="ignore", over="ignore"):
        out = np.float32(1) / scale
    return np.where(np.isfinite(out), out, np.float32(0))


def half_away(x: Array) -> Array:
    """Round, ties away from zero, as C's roundf."""
    whole = np.trunc(x)
    # Exact: x and its whole part are close (Sterbenz), where the part differs from zero at all.
    return whole + np.trunc(np.float32(2) * (x - whole))


def _largest(x: Array) -> Array:
    """The number of each block with the largest magnitude, with its sign; the first of equals."""
    return np.take_along_axis(x, np.abs(x).argmax(axis=1)[:, None], axis=1)


def _symmetric(x: Array, levels: int) -> tuple[Array, Array]:
    """Scale and codes where the largest number gets the code 0, which stands for -levels."""
    d = _largest(x) / np.float32(-levels)
    q = np.trunc(x * inverse(d) + np.float32(levels + 0.5))
    return d, np.clip(q, 0, 2 * levels - 1).astype(np.uint8)


def _affine(x: Array, top: int) -> tuple[Array, Array, Array]:
    """Scale, minimum and codes 0..top from the minimum to the maximum."""
    m = x.min(axis=1, keepdims=True)
    d = (x.max(axis=1, keepdims=True) - m) / np.float32(top)
    q = np.trunc((x - m) * inverse(d) + np.float32(0.5))
    return d, m, np.clip(q, 0, top).astype(np.uint8)


def _top_bits(q: Array) -> Array:
    return np.packbits(q >> 4, axis=1, bitorder="little")


def q4_0(x: Array) -> Array:
    """Sixteen levels around zero."""
    d, q = _symmetric(x, 8)
    return records("q4_0", d=d[:, 0], qs=pack(q, 4, 16))


def q4_1(x: Array) -> Array:
    """Sixteen levels from minimum to maximum."""
    d, m, q = _affine(x, 15)
    return records("q4_1", d=d[:, 0], m=m[:, 0], qs=pack(q, 4, 16))


def q5_0(x: Array) -> Array:
    """Thirty-two levels around zero."""
    d, q = _symmetric(x, 16)
    return records("q5_0", d=d[:, 0], qh=_top_bits(q), qs=pack(q, 4, 16))


def q5_1(x: Array) -> Array:
    """Thirty-two levels from minimum to maximum."""
    d, m, q = _affine(x, 31)
    return records("q5_1", d=d[:, 0], m=m[:, 0], qh=_top_bits(q), qs=pack(q, 4, 16))


def q8_0(x: Array) -> Array:
    """Eight bits around zero."""
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    return records("q8_0", d=d[:, 0], qs=half_away(x * inverse(d)).astype(np.int8))


def q8_1(x: Array) -> Array:
    """Eight bits around zero, and their sum times the scale."""
    d = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    q = half_away(x * inverse(d)).astype(np.int8)
    return records("q8_1", d=d[:, 0], s=d[:, 0] * q.sum(axis=1, dtype=np.int32).astype(np.float32), qs=q)


def q8_k(x: Array) -> Array:
    """Eight bits around zero where the largest number gets -127, and sums of 16."""
    step = np.float32(-127) * inverse(_largest(x))
    q = np.minimum(np.rint(step * x), 127).astype(np.int8)
    sums = q.reshape(len(x), 16, 16).sum(axis=2, dtype=np.int16)
    return records("q8_k", d=inverse(step)[:, 0], qs=q, sums=sums)


def mxfp4(x: Array) -> Array:
    """A power of two and FP4 numbers; the largest keeps its own exponent."""
    top = np.abs(x).max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        e = np.where(top > 0, np.floor(np.log2(top)) - 2 + 127, 0)
    e = np.clip(e, 0, 254).astype(np.uint8)
    scale = np.where(e < 2, np.uint32(0x00200000) << e, (e.astype(np.uint32) - 1) << 23)
    levels = scale.astype(np.uint32).view(np.float32) * FP4_VALUES  # (blocks, 16)
    q = np.abs(levels[:, None, :] - x[:, :, None]).argmin(axis=2)
    return records("mxfp4", e=e[:, 0], qs=pack(q, 4, 16))


def _ternary(x: Array) -> tuple[Array, Array]:
    d = np.abs(x).max(axis=1, keepdims=True)
    return d[:, 0], (half_away(x * inverse(d)) + np.float32(1)).astype(np.uint8)


def tq2_0(x: Array) -> Array:
    """-1, 0 and 1 times the largest magnitude, in two bits."""
    d, q = _ternary(x)
    return records("tq2_0", d=d, qs=pack(q, 2, 32))


def _digits(q: Array, run: int, count: int) -> Array:
    """Digits of base 3 as the fraction of 256 that `decode` takes apart, rounded up."""
    powers = (3 ** np.arange(4, 4 - count, -1)).astype(np.uint16).reshape(count, 1)
    number = (q.reshape(len(q), -1, count, run) * powers).sum(axis=2, dtype=np.uint32)
    return ((number * 256 + 242) // 243).astype(np.uint8).reshape(len(q), -1)


def tq1_0(x: Array) -> Array:
    """-1, 0 and 1 times the largest magnitude, five to a byte."""
    d, q = _ternary(x)
    qs = [_digits(q[:, :160], 32, 5), _digits(q[:, 160:240], 16, 5)]
    return records("tq1_0", d=d, qs=np.concatenate(qs, axis=1), qh=_digits(q[:, 240:], 4, 4))


ENCODE: dict[str, Callable[[Any], Array]] = {
    "q4_0": q4_0,
    "q4_1": q4_1,
    "q5_0": q5_0,
    "q5_1": q5_1,
    "q8_0": q8_0,
    "q8_1": q8_1,
    "q8_k": q8_k,
    "mxfp4": mxfp4,
    "tq1_0": tq1_0,
    "tq2_0": tq2_0,
}
