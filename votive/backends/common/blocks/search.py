"""The nearest points of a codebook under weighted square errors, for the encoders of the IQ types. Arrays only.

A point is two halves, each one of a few (81, or 64 in IQ3), so its error is one of a few numbers plus one of a few
others: those of all halves are computed once, and the least sum is searched for by comparing them. Errors become whole
numbers with the halves' own numbers in their low bits, so that the least one tells which it was, and results do not
depend on the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .bits import Array
from .codebooks import codebook

# Vectors at a time: enough for the calls to pay, few enough for the cache.
_VECTORS = 4096


@dataclass(frozen=True)
class _Halves:
    """The points of a codebook by halves: `second` has, for each first half, the second ones that go with it."""

    levels: Array
    size: int  # coordinates of a half
    count: int  # halves there are
    second: tuple[tuple[int, tuple[int, ...]], ...]
    index: Array  # first · count + second -> point
    bits: int  # that hold that number


@cache
def _halves(book: str) -> _Halves:
    points, levels = codebook(book).points, codebook(book).values
    size = points.shape[1] // 2
    digits = np.searchsorted(levels, points).reshape(len(points), 2, size)
    first, second = (digits @ (len(levels) ** np.arange(size))).T
    count = len(levels) ** size
    index = np.zeros(count * count, np.uint16)
    index[first * count + second] = np.arange(len(points))
    groups = tuple((int(a), tuple(int(b) for b in second[first == a])) for a in np.unique(first))
    return _Halves(levels, size, count, groups, index, int(count * count - 1).bit_length())


def nearest(book: str, x: Array, w: Array) -> Array:
    """The index of the point p with the least sum of w (x - p)² for each vector; (vectors, width) each."""
    out = np.empty(len(x), np.uint16)
    for i in range(0, len(x), _VECTORS):
        out[i : i + _VECTORS] = _nearest(_halves(book), x[i : i + _VECTORS], w[i : i + _VECTORS])
    return out


def _nearest(h: _Halves, x: Array, w: Array) -> Array:
    xt, wt = np.ascontiguousarray(x.T), np.ascontiguousarray(w.T)
    costs = wt[:, None] * np.square(xt[:, None] - h.levels[:, None])  # (width, levels, vectors)
    # What every point costs at least does not matter; the rest is measured in shares of what one costs at most.
    costs -= costs.min(axis=1, keepdims=True)
    most = costs.max(axis=1).sum(axis=0)
    # One less for each coordinate that is rounded up.
    whole = np.float32((1 << (32 - h.bits)) - 1 - 2 * len(xt))
    with np.errstate(divide="ignore"):
        unit = np.where(most > 0, whole / most, np.float32(0))
    steps = np.rint(costs * unit).astype(np.uint32)
    a, b = (_sums(part) << h.bits for part in (steps[: h.size], steps[h.size :]))
    numbers = np.arange(h.count, dtype=np.uint32)[:, None]
    a |= numbers * h.count
    b |= numbers
    best = np.full(len(x), 0xFFFFFFFF, np.uint32)
    least = np.empty_like(best)
    for first, seconds in h.second:
        np.copyto(least, b[seconds[0]])
        for second in seconds[1:]:
            np.minimum(least, b[second], out=least)
        least += a[first]
        np.minimum(best, least, out=best)
    found: Array = h.index[best & np.uint32((1 << h.bits) - 1)]
    return found


def _sums(costs: Array) -> Array:
    """Of all halves, the first coordinate running fastest: (coordinates, levels, vectors) to (halves, vectors)."""
    total = costs[0]
    for each in costs[1:]:
        total = (each[:, None] + total[None]).reshape(-1, total.shape[-1])
    return total
