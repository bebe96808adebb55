"""Pooling on native kernels: boxes as tables of where they start and end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ....core.layout import Spec
from ...common.slot import Slot
from ...common.windows import taps_within
from ..arrays import Args, Array, Ints
from ..reference.pooling import covering
from .dtypes import FLOATS, INTEGERS
from .rows import OUT, OUT1, native

_LARGEST = 2**31 - 1  # positions are counted in 32 bits
_SMALL = 2**18


def filled_floats(*specs: Spec) -> bool:
    """Floats, none empty."""
    return specs[0].dtype in FLOATS and all(s.numel for s in specs)


def numbers(*specs: Spec) -> bool:
    """Floats or integers, none empty."""
    return specs[0].dtype in (FLOATS | INTEGERS) and all(s.numel for s in specs)


def _table(values: ArrayLike) -> Array:
    return np.ascontiguousarray(values, np.int64)


_ONE = (_table([0]), _table([1]))


def boxes(x: Slot, axes: Sequence[tuple[Array | None, ...]], divisor: float = 0.0) -> Args:
    """Arguments of box_sum from (start, end, divisor of inputs, of outputs) per dimension.

    Divisors are given for every dimension or for none.
    """
    extra = [None if part is None else _table([1]) for part in axes[0][2:]]
    one = (*_ONE, *extra)
    n = len(axes)
    tables = [one] * (3 - n) + [tuple(None if t is None else _table(t) for t in a) for a in axes]
    return x, OUT, *(t for axis in tables for t in axis), n, divisor


def _windows(i: int, o: int, k: int, s: int, p: int, include_pad: bool) -> tuple[Any, Any, Any]:
    """Starts and ends within the input, and how many elements each window counts."""
    start = np.arange(o) * s - p
    end = np.minimum(start + k, i + p)
    first, last = np.maximum(start, 0), np.minimum(end, i)
    return first, last, end - start if include_pad else last - first


@native("_avg_pool", "box_sum", accepts=filled_floats)
def avg_pool(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Args:
    axes = []
    for window in zip(x.shape[-len(size) :], size, kernel, stride, padding, strict=True):
        start, end, count = _windows(*window, include_pad)
        axes.append((start, end, None, None if divisor else count))
    return boxes(x, axes, float(divisor or 0))


@native("_avg_pool_transpose", "box_sum", accepts=filled_floats)
def avg_pool_transpose(
    x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, include_pad: bool, divisor: int | None
) -> Args:
    axes = []
    places = x.shape[-len(size) :]
    for window in zip(size, places, kernel, stride, padding, strict=True):
        start, end, count = _windows(*window, include_pad)
        axes.append((*covering(start, end, window[0]), None if divisor else count, None))
    return boxes(x, axes, float(divisor or 0))


@native("_max_pool", "max_pool", accepts=numbers)
def max_pool(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Args:
    sizes = x.shape[-len(size) :]
    if math.prod(sizes) > _LARGEST:
        return None
    read = 1
    for i, o, k, s, p, d in zip(sizes, size, kernel, stride, padding, dilation, strict=True):
        first, last = taps_within(np.arange(o) * s - p, i, k, d)
        if (first > last).any():  # dilation stepped over the whole input
            return None
        read *= (o - 1) * s + d * (k - 1) + 1
    # Windows are read from a copy with its padding, which must not outgrow what is pooled.
    if read > _SMALL + 8 * math.prod(sizes):
        return None
    return x, OUT, OUT1, *stride, *padding, *dilation, *kernel


@native("_max_pool_values", "max_pool_values", accepts=numbers, optional=True)
def max_pool_values(x: Slot, size: Ints, *geometry: Ints) -> Args:
    arranged = max_pool(x, size, *geometry)
    return arranged and (*arranged[:2], *arranged[3:])


@native("_max_pool_transpose", "put_back", accepts=numbers)
def max_pool_transpose(g: Slot, index: Slot, size: Ints, windows: Ints) -> Args:
    return g, index, OUT, len(size)
