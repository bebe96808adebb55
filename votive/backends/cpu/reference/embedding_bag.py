"""Sums, means and the largest row of each bag, on NumPy."""

from __future__ import annotations

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array
from .embedding import starts

_OP = "embedding_bag"


def _check(indices: Array, offsets: Array, rows: int) -> None:
    if indices.size:
        low, high = indices.min(), indices.max()
        if low < 0 or high >= rows:
            bad = low if low < 0 else high
            fail(RuntimeError, _OP, f"index {bad} is out of range for {rows} rows.")
    if offsets.size:
        first, last = offsets[0], offsets[-1]
        if first != 0:
            fail(RuntimeError, _OP, f"the first bag must begin at 0, offsets begin with {first}.")
        if last > indices.size:
            fail(RuntimeError, _OP, f"offset {last} lies behind all {indices.size} indices.")
        falls = np.flatnonzero(offsets[1:] < offsets[:-1])
        if falls.size:
            a, b = offsets[falls[0] : falls[0] + 2]
            fail(RuntimeError, _OP, f"offsets must not fall, but {b} follows {a}.")


@kernel("_bag")
def bag(
    weight: Array,
    indices: Array,
    offsets: Array,
    factors: Array | None,
    mean: bool,
    padding: int,
    by_frequency: bool,
    ends: bool,
) -> Array:
    _check(indices, offsets, weight.shape[0])
    count = offsets.size - ends
    bags = np.searchsorted(offsets, np.arange(indices.size), side="right") - 1
    used = (indices != padding) & (bags < count)
    bags, rows = bags[used], weight[indices[used]]
    if factors is not None:
        rows = rows * factors[used][:, None]
    out = np.zeros((count, weight.shape[1]), weight.dtype)
    np.add.at(out, bags, rows)
    if mean:
        out /= np.maximum(np.bincount(bags, minlength=count), 1)[:, None].astype(out.dtype)
    return out


@kernel("_bag_argmax")
def bag_argmax(weight: Array, indices: Array, bags: Array, count: int) -> Array:
    out = np.full((count, weight.shape[1]), -1, np.int64)
    if indices.size:
        rows = weight[indices]
        first = starts(bags)
        which = bags[first]
        largest = np.fmax.reduceat(rows, first, axis=0)
        runs = np.diff(first, append=len(bags))
        places = np.arange(len(bags))[:, None]
        # Of equal values the first counts; nothing is larger than a NaN that comes first.
        place = np.where(rows == np.repeat(largest, runs, axis=0), places, len(bags))
        place = np.minimum.reduceat(place, first, axis=0)
        place = np.where(np.isnan(rows[first]), first[:, None], place)
        out[which] = indices[place]
    return out
