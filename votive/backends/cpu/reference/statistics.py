"""Variance, median and mode. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .extremum import pick
from .reduction import WIDE, count, total


@kernel("_var")
def var(x: Array, dim: Ints, correction: float, keepdim: bool) -> Array:
    n = count(x, dim)
    # Two passes, the first with twice the digits: large sums of squares would cancel.
    away = x - np.sum(x, dim, WIDE.get(x.dtype), keepdims=True) / np.float64(n)
    size = away.real**2 + away.imag**2 if x.dtype.kind == "c" else away * away
    return total(size, dim, keepdim) / np.float64(max(n - correction, 0))


@kernel("_std")
def std(x: Array, dim: Ints, correction: float, keepdim: bool) -> Array:
    return np.sqrt(var(x, dim, correction, keepdim))


def _median_index(x: Array, ignore_nan: bool) -> Any:
    """Where the lower median of each row (last axis) is."""
    order = np.argsort(x, axis=-1, kind="stable")  # NaN comes last
    nan = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    missing = nan.sum(axis=-1, keepdims=True)
    n = x.shape[-1]
    middle = np.maximum(n - missing * ignore_nan - 1, 0) // 2
    found = np.take_along_axis(order, middle, -1)
    return found if ignore_nan else np.where(missing > 0, nan.argmax(-1, keepdims=True), found)


def _mode_index(x: Array) -> Any:
    """Where the smallest of the most frequent values of each row (last axis) occurs last."""
    order = np.argsort(x, axis=-1, kind="stable")
    s = np.take_along_axis(x, order, -1)
    place = np.arange(s.shape[-1])
    starts = np.ones(s.shape, bool)
    starts[..., 1:] = s[..., 1:] != s[..., :-1]
    # How far each place lies in its run of equals: first at its most where the mode occurs last.
    into = place - np.maximum.accumulate(np.where(starts, place, 0), axis=-1)
    return np.take_along_axis(order, into.argmax(-1, keepdims=True), -1)


@kernel("_sample")
def sample(x: Array, kind: str, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    rows = np.moveaxis(x, dim, -1)
    index = _mode_index(rows) if kind == "mode" else _median_index(rows, kind == "nanmedian")
    return pick(x, np.moveaxis(index, -1, dim), dim, keepdim)


@kernel("_median")
def median(x: Array, kind: str) -> Array:
    if x.size == 0:
        return np.asarray(np.nan).astype(x.dtype)
    flat = x.reshape(-1)
    return flat[_median_index(flat, kind == "nanmedian")[0]]
