"""Pooling to a given size on NumPy: adaptive and fractional windows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .pooling import covering, largest, sum_ranges


def _ranges(size: int, places: int) -> tuple[Any, Any]:
    """Starts and ends of adaptive windows; neighbours may overlap by one element."""
    at = np.arange(places)
    return at * size // max(places, 1), -((at + 1) * -size // max(places, 1))


@kernel("_adaptive_avg_pool")
def adaptive_avg_pool(x: Array, size: Ints) -> Array:
    for axis in range(-len(size), 0):
        start, end = _ranges(x.shape[axis], size[axis])
        x = sum_ranges(x, start, end, axis) / _along((end - start).astype(x.dtype), axis)
    return x


@kernel("_adaptive_avg_pool_transpose")
def adaptive_avg_pool_transpose(x: Array, size: Ints) -> Array:
    for axis in range(-len(size), 0):
        start, end = _ranges(size[axis], x.shape[axis])
        x = x / _along((end - start).astype(x.dtype), axis)
        x = sum_ranges(x, *covering(start, end, size[axis]), axis)
    return x


def _along(vector: Array, axis: int) -> Any:
    """A vector that broadcasts along a dimension counted from the end."""
    return vector.reshape(-1, *(1,) * (-1 - axis))


@kernel("_adaptive_max_pool")
def adaptive_max_pool(x: Array, size: Ints) -> tuple[Any, Any]:
    tables = []
    for i, o in zip(x.shape[-len(size) :], size, strict=True):
        start, end = _ranges(i, o)
        longest = int((end - start).max(initial=1))
        # Shorter windows name their last element again.
        tables.append(np.minimum(start[:, None] + np.arange(longest), end[:, None] - 1))
    return largest(x, tables)


def _random_starts(samples: Array, size: int, places: int, kernel: int) -> Any:
    """Where windows begin: evenly spaced, shifted by each sample, the last one at the end."""
    starts = np.full((*samples.shape, places), size - kernel)
    if places > 1:
        step = np.asarray((size - kernel) / (places - 1), samples.dtype)
        at = np.arange(places - 1, dtype=samples.dtype)
        first = (samples * step).astype(np.int64)[..., None]
        starts[..., :-1] = ((at + samples[..., None]) * step).astype(np.int64) - first
    return starts


@kernel("_fractional_max_pool")
def fractional_max_pool(x: Array, size: Ints, kernel: Ints, samples: Array) -> tuple[Any, Any]:
    n = len(size)
    lead, sizes = x.shape[:-n], x.shape[-n:]
    samples = samples[: lead[0]] if len(lead) == 2 else samples[0]
    position = np.zeros((*lead, *(1,) * (2 * n)), np.int64)
    for d in range(n):
        # torch draws samples for (width, height), but for (time, height, width).
        sample = samples[..., 1 - d if n == 2 else d]
        starts = _random_starts(sample, sizes[d], size[d], kernel[d])
        window = starts[..., None] + np.arange(kernel[d])
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = size[d], kernel[d]
        position = position * sizes[d] + window.reshape(*lead, *shape)
    position = position.reshape(*lead, *size, math.prod(kernel))
    flat = x.reshape(*lead, *(1,) * n, math.prod(sizes))
    values = np.take_along_axis(np.broadcast_to(flat, (*lead, *size, flat.shape[-1])), position, -1)
    best, at = largest(values, [np.arange(position.shape[-1])[None]])
    return best[..., 0], np.take_along_axis(position, at, -1)[..., 0]
