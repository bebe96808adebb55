"""float32 to types whose codes stand for a few fixed levels (IQ4, NVFP4, two bits and one), by search over scales.

x ≈ d·level, or d·s·level with a small integer s per group: extremes are tried at several places near the ends of the
levels, the best scale for the codes is a weighted least-squares solution, and scales as they are stored choose the
final codes. Each function takes (blocks, elements) and returns records. Knows arrays, not files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .bits import Array, pack
from .decode import FP4_VALUES, IQ4_VALUES, fp8_scales
from .encode_k import column_weights
from .encode_plain import inverse, records

# Alternate between codes and scales.
_ROUNDS = 2


@dataclass(frozen=True, eq=False)
class _Levels:
    """Whole numbers that codes 0, 1, … stand for, and the shares of its end at which an extreme is tried."""

    values: Array
    shares: Array

    @cached_property
    def ends(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def _nearest(self) -> Array:
        """The nearest code for each half between the ends: borders between whole numbers are halves."""
        halves = np.arange(2 * self.ends[0] - 1, 2 * self.ends[1] + 2) / 2 + 0.25
        return np.abs(halves[:, None] - self.values).argmin(axis=1).astype(np.uint8)

    def codes(self, y: Array) -> Array:
        """The nearest codes to numbers in units of the scale."""
        low, high = self.ends
        at = np.floor(2 * np.clip(y, low - 0.5, high + 0.5)) - (2 * low - 1)
        found: Array = self._nearest[at.astype(np.intp)]
        return found


_IQ4 = _Levels(IQ4_VALUES, np.linspace(0.8, 1.12, 9, dtype=np.float32))
_TWO = _Levels(np.array([-1, 0, 1, 2], np.float32), np.linspace(0.55, 1.5, 12, dtype=np.float32))


def _total(a: Array) -> Array:
    return a.sum(axis=-1, keepdims=True)


def _solve(x: Array, w: Array, q: Array) -> tuple[Array, Array]:
    """The least-squares scale of groups (last axis), and how much of their squares it explains."""
    xq = _total(w * x * q)
    scale = xq * inverse(_total(w * q * q))
    return scale, scale * xq


def _fit(levels: _Levels, x: Array, w: Array) -> Array:
    """The scale of each group (last axis), of either sign; (..., 1)."""
    extreme = np.take_along_axis(x, np.abs(x).argmax(axis=-1)[..., None], axis=-1)
    best, most = np.zeros_like(extreme), np.zeros_like(extreme)

    def tried(scale: Array, best: Array, most: Array) -> tuple[Array, Array]:
        solved, explained = _solve(x, w, levels.values[levels.codes(x * inverse(scale))])
        better = explained > most
        return np.where(better, solved, best), np.where(better, explained, most)

    for end in levels.ends:
        for share in levels.shares:
            best, most = tried(extreme / np.float32(end * share), best, most)
    for _ in range(_ROUNDS):
        best, most = tried(best, best, most)
    return best


def _half(a: Array) -> Array:
    return a.astype(np.float16).astype(np.float32)


def _single(levels: _Levels, x: Array, importance: Array | None) -> tuple[Array, Array]:
    """d (blocks,) and codes where a block has one scale."""
    w = column_weights(x, importance)
    d = _half(_fit(levels, x, w))
    return d[:, 0], levels.codes(x * inverse(d))


def iq4_nl(x: Array, importance: Array | None) -> Array:
    """Sixteen levels, dense around zero; one scale for each 32."""
    d, q = _single(_IQ4, x, importance)
    return records("iq4_nl", d=d, qs=pack(q, 4, 16))


def q2_0(x: Array, importance: Array | None) -> Array:
    """-1, 0, 1 and 2 times a scale of either sign for each 64."""
    d, q = _single(_TWO, x, importance)
    return records("q2_0", d=d, qs=pack(q, 2, 1))


def iq4_xs(x: Array, importance: Array | None) -> Array:
    """The levels of IQ4_NL; a scale of 6 bits for each 32."""
    x = x.reshape(len(x), 8, 32)
    w = column_weights(x, importance)
    scale = _fit(_IQ4, x, w)[..., 0]
    largest = np.take_along_axis(scale, np.abs(scale).argmax(axis=1)[:, None], axis=1)
    weight = (w * x * x).sum(axis=-1) * np.square(inverse(scale))  # as much as errors of the scale matter
    d, least = np.zeros_like(largest), np.full_like(largest, np.inf)
    for top in (-32, -31, -30, -29, -28, 31, 30, 29):
        tried = _half(largest / np.float32(top))
        error = _total(weight * np.square(scale - tried * np.clip(np.rint(scale * inverse(tried)), -32, 31)))
        better = error < least
        d, least = np.where(better, tried, d), np.where(better, error, least)

    def codes(d: Array, s: Array) -> tuple[Array, Array]:
        step = (d * s)[..., None]
        q = _IQ4.codes(x * inverse(step))
        r = x - step * IQ4_VALUES[q]
        return q, _total((w * r * r).sum(axis=-1))

    s = np.clip(np.rint(scale * inverse(d)), -32, 31)
    q, error = codes(d, s)
    for _ in range(_ROUNDS):
        v = IQ4_VALUES[q]
        u = s[..., None] * v
        d2 = _half((w * x * u).sum(axis=(1, 2))[:, None] * inverse((w * u * u).sum(axis=(1, 2))[:, None]))
        s2 = np.clip(np.rint(_solve(x, w, v)[0][..., 0] * inverse(d2)), -32, 31)
        q2, error2 = codes(d2, s2)
        better = error2 < error
        d, s, error = np.where(better, d2, d), np.where(better, s2, s), np.where(better, error2, error)
        q = np.where(better[..., None], q2, q)
    raw = (s + 32).astype(np.uint16)
    high = np.bitwise_or.reduce((raw >> 4) << np.arange(0, 16, 2, dtype=np.uint16), axis=1)
    low = ((raw[:, ::2] & 15) | ((raw[:, 1::2] & 15) << 4)).astype(np.uint8)
    return records("iq4_xs", d=d[:, 0], high=high, low=low, qs=pack(q.reshape(len(x), 256), 4, 16))


_FP4 = _Levels(FP4_VALUES, np.ones(1, np.float32))


def nvfp4(x: Array, importance: Array | None) -> Array:
    """FP4 numbers; a scale of FP8 for each 16."""
    x = x.reshape(len(x), 4, 16)
    w = column_weights(x, importance)
    scales = fp8_scales(np.arange(127, dtype=np.uint8))  # of doubled levels
    most = np.abs(x).max(axis=-1)
    if (most > scales[-1] * _FP4.ends[1]).any():
        # Beyond them numbers would be cut off, silently.
        raise ValueError(
            f"quantize: numbers up to {most.max():.3g} are too large for NVFP4, which ends at "
            f"{scales[-1] * _FP4.ends[1]:.0f}; keep the tensor as F32."
        )
    # From the largest at the last level but a little beyond, to the largest at the level before.
    first = np.searchsorted(scales, most / np.float32(_FP4.ends[1]))
    best, q, least = first, np.zeros(x.shape, np.uint8), np.full(most.shape, np.inf, np.float32)
    for step in range(-2, 7):
        code = np.clip(first + step, 0, len(scales) - 1)
        each = scales[code][..., None]
        tried = _FP4.codes(x * inverse(each))
        r = x - each * FP4_VALUES[tried]
        error = (w * r * r).sum(axis=-1)
        better = error < least
        best, least = np.where(better, code, best), np.where(better, error, least)
        q = np.where(better[..., None], tried, q)
    return records("nvfp4", d=best, qs=pack(q.reshape(len(x), 64), 4, 8))


def q1_0(x: Array, importance: Array | None) -> Array:
    """Signs; the scale is the mean magnitude, which leaves the least square error."""
    w = np.ones_like(x) if importance is None else importance
    w = np.where(_total(w) > 0, w, np.float32(1))
    d = _total(w * np.abs(x)) / _total(w)
    return records("q1_0", d=d[:, 0], qs=np.packbits(x >= 0, axis=1, bitorder="little"))


ENCODE_LEVELS: dict[str, Callable[[Any, Array | None], Array]] = {
    "iq4_nl": iq4_nl,
    "iq4_xs": iq4_xs,
    "nvfp4": nvfp4,
    "q2_0": q2_0,
    "q1_0": q1_0,
}
