"""Running sums, products, extremes and recurrences along a dimension. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ...common.primitives import logaddexp
from ..arrays import Array
from .reduction import WIDE, cast


@kernel("cumsum")
def cumsum(x: Array, dim: int, dtype: dtype) -> Array:
    x = cast(x, dtype)
    # One by one is the only order a running sum has, so the digits come from a wider accumulator.
    return np.cumsum(x, axis=dim, dtype=WIDE.get(x.dtype, x.dtype)).reshape(x.shape)


@kernel("cumprod")
def cumprod(x: Array, dim: int, dtype: dtype) -> Array:
    x = cast(x, dtype)
    return np.cumprod(x, axis=dim, dtype=WIDE.get(x.dtype, x.dtype)).reshape(x.shape)


@kernel("_shift", into=True, widen=False)
def shift(x: Array, dim: int, by: int, fill: float, out: Array) -> None:
    if x.ndim == 0:
        out[...] = fill
        return
    x, result = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    if by > 0:
        result[by:], result[:by] = x[:-by], fill
    else:
        result[:by], result[by:] = x[-by:], fill


@kernel("_recurrence")
def recurrence(gain: Array, x: Array, dim: int, reverse: bool) -> Array:
    if x.ndim == 0:
        return x.copy()
    order = slice(None, None, -1 if reverse else 1)
    a, y = (np.moveaxis(t, dim, 0)[order].copy() for t in (gain, x))
    # Each round joins runs of `step` places into runs of twice that: log2(n) whole-array rounds
    # instead of n small ones.
    step = 1
    while step < len(y):
        y[step:] += a[step:] * y[:-step]
        a[step:] *= a[:-step].copy()
        step *= 2
    return np.moveaxis(y[order], 0, dim)


@kernel("logcumsumexp")
def logcumsumexp(x: Array, dim: int) -> Array:
    if x.ndim == 0:
        return x.copy()
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim, dtype=WIDE.get(x.dtype, x.dtype))
    y = np.moveaxis(x, dim, 0).copy()
    step = 1
    while step < len(y):
        y[step:] = logaddexp(y[step:], y[:-step])
        step *= 2
    return np.moveaxis(y, 0, dim)


def _running(x: Array, dim: int, extreme: np.ufunc) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x.copy(), np.zeros((), np.int64)
    values = extreme.accumulate(x, axis=dim)
    # A place that equals the running extreme set it, the last of equals winning; so does each NaN.
    place = np.arange(x.shape[dim]).reshape([-1] + [1] * (x.ndim - 1 - dim))
    setting = (x == values) | (x != x)
    return values, np.maximum.accumulate(np.where(setting, place, 0), axis=dim)


@kernel("_cummax")
def cummax(x: Array, dim: int) -> tuple[Any, Any]:
    return _running(x, dim, np.maximum)


@kernel("_cummin")
def cummin(x: Array, dim: int) -> tuple[Any, Any]:
    return _running(x, dim, np.minimum)
