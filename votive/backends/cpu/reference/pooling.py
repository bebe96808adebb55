"""Pooling one dimension after the other: the largest value and the sum of a box are separable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel
from ...common.windows import taps_within
from ..arrays import Array, Ints


def largest(x: Array, tables: list[Any]) -> tuple[Any, Any]:
    """Largest values of windows over the last dimensions, and their flat positions there.

    A table (places, window) names the elements of each window along one dimension. Among equal
    values the first counts, among NaN the last, as in torch.
    """
    n = len(tables)
    sizes = x.shape[x.ndim - n :]
    index = np.broadcast_to(np.arange(math.prod(sizes)).reshape(sizes), x.shape)
    for axis, table in zip(range(-1, -n - 1, -1), reversed(tables), strict=True):
        best, at = x.take(table[:, 0], axis), index.take(table[:, 0], axis)
        for k in range(1, table.shape[1]):
            value = x.take(table[:, k], axis)
            better = (value > best) | (value != value)
            np.copyto(best, value, where=better)
            np.copyto(at, index.take(table[:, k], axis), where=better)
        x, index = best, at
    return x, index


def sum_ranges(x: Array, starts: Array, ends: Array, axis: int) -> Any:
    """`out[..., i, ...] = x[..., starts[i] : ends[i], ...].sum()` along one dimension."""
    room = [(0, 0)] * x.ndim
    room[axis] = (0, 1)  # reduceat wants every end to be a valid index
    bounds = np.stack([starts, np.maximum(ends, starts)], 1).reshape(-1)
    sums = np.moveaxis(np.add.reduceat(np.pad(x, room), bounds, axis), axis, -1)[..., ::2]
    sums[..., ends <= starts] = 0  # where reduceat gives the element at the start
    return np.moveaxis(sums, -1, axis)


def covering(starts: Array, ends: Array, size: int) -> tuple[Any, Any]:
    """For each of `size` elements the range of the (rising) ranges that hold it."""
    at = np.arange(size)
    return np.searchsorted(ends, at, "right"), np.searchsorted(starts, at, "right")


@kernel("_max_pool")
def max_pool(x: Array, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> tuple[Array, ...]:
    tables, missed = [], []
    for i, o, k, s, p, d in zip(x.shape[-len(size) :], size, kernel, stride, padding, dilation):
        start = np.arange(o)[:, None] * s - p
        first, last = taps_within(start, i, k, d)
        # As many steps as the longest window has within the input; shorter ones repeat their last.
        steps = np.arange(max(1, (last - first).max() + 1))
        tables.append((start + np.minimum(first + steps, last) * d).clip(0, i - 1))
        missed.append(last[:, 0] < first[:, 0])  # dilation stepped over the whole input
    values, index = largest(x, tables)
    for axis, none in enumerate(missed, -len(size)):
        if none.any():
            lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            np.moveaxis(values, axis, -1)[..., none] = lowest
    return values, index


@kernel("_max_pool_values")
def max_pool_values(x: Array, size: Ints, *geometry: Ints) -> Array:
    return max_pool(x, size, *geometry)[0]


@kernel("_max_pool_transpose")
def max_pool_transpose(x: Array, index: Array, size: Ints, windows: Ints) -> Array:
    lead, elements = x.shape[: x.ndim - len(size)], math.prod(size)
    out = np.zeros((math.prod(lead), elements), x.dtype)
    places = math.prod(x.shape[x.ndim - len(size) :])
    at = index.reshape(len(out), places) + np.arange(len(out))[:, None] * elements
    np.add.at(out.reshape(-1), at.reshape(-1), x.reshape(-1))
    return out.reshape(*lead, *size)


def _boxes(
    sizes: Ints, places: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool
) -> tuple[list[Any], Any]:
    """Ranges of each dimension, clipped to the input, and how many elements each box counts."""
    ranges, counts = [], np.ones(1, np.int64)
    for i, o, k, s, p in zip(sizes, places, kernel, stride, padding, strict=True):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, i + p)
        clipped = np.maximum(start, 0), np.minimum(end, i)
        ranges.append(clipped)
        counts = np.multiply.outer(counts, end - start if include_pad else clipped[1] - clipped[0])
    return ranges, counts[0]


@kernel("_avg_pool")
def avg_pool(
    x: Array, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Array:
    n = len(size)
    ranges, counts = _boxes(x.shape[-n:], size, kernel, stride, padding, include_pad)
    for axis, (start, end) in zip(range(-n, 0), ranges, strict=True):
        x = sum_ranges(x, start, end, axis)
    by = counts if divisor is None else divisor
    if x.dtype.kind == "f":
        return x / np.asarray(by, x.dtype)
    return np.sign(x) * np.sign(by) * (np.abs(x) // np.abs(by))  # toward zero, as in C


@kernel("_avg_pool_transpose")
def avg_pool_transpose(
    x: Array, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Array:
    n = len(size)
    ranges, counts = _boxes(size, x.shape[-n:], kernel, stride, padding, include_pad)
    x = x / np.asarray(counts if divisor is None else divisor, x.dtype)
    for axis, (start, end) in zip(range(-n, 0), ranges, strict=True):
        x = sum_ranges(x, *covering(start, end, size[axis]), axis)
    return x
