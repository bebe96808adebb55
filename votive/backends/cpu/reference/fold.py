"""Sliding windows over arrays, tap by tap: which of them read within the array, and where.

What lies in the padding is skipped, not read as zeros. So nothing is ever multiplied by it, and no
copy grows with stride, padding or dilation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base import kernel
from ...common.windows import places_of
from ..arrays import Array, Ints

# Positions or slices of the last dimensions.
Index = tuple[Any, ...]


def _within(size: int, places: int, stride: int, offset: int) -> tuple[slice, slice]:
    """The places o whose source o * stride + offset lies in 0..size-1, and these sources."""
    first = min(max(0, -(offset // stride)), places)
    last = min(max(first, -((offset - size) // stride)), places)
    start = first * stride + offset
    return slice(first, last), slice(start, start + (last - first - 1) * stride + 1, stride)


def taps(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Sequence[int]
) -> Iterator[tuple[Index, Index, Index]]:
    """(position in the kernel, the windows whose tap lies within the array, the elements it is).

    A tap that no window has within the array is left out.
    """
    per_dim: list[list[tuple[int, slice, slice]]] = []
    for i, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, places, strict=True):
        found = ((t, *_within(i, o, s, t * d - p)) for t in range(k))
        per_dim.append([(t, at, src) for t, at, src in found if at.start < at.stop])
    for which in np.ndindex(*map(len, per_dim)):
        chosen = [dim[n] for dim, n in zip(per_dim, which, strict=True)]
        yield tuple(c[0] for c in chosen), tuple(c[1] for c in chosen), tuple(c[2] for c in chosen)


@kernel("_unfold", widen=False)
def unfold(x: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Array:
    size = x.shape[2:]
    places = places_of(size, kernel, stride, padding, dilation)
    out = np.zeros((*x.shape[:2], *kernel, *places), x.dtype)
    for tap, at, source in taps(size, kernel, stride, padding, dilation, places):
        out[(..., *tap, *at)] = x[(..., *source)]
    return out.reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(places))


@kernel("_fold")
def fold(x: Array, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Array:
    places = places_of(size, kernel, stride, padding, dilation)
    channels = x.shape[1] // math.prod(kernel)
    cols = x.reshape(x.shape[0], channels, *kernel, *places)
    out = np.zeros((x.shape[0], channels, *size), x.dtype)
    for tap, at, source in taps(size, kernel, stride, padding, dilation, places):
        out[(..., *source)] += cols[(..., *tap, *at)]
    return out
