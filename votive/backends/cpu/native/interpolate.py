"""Resizing on native kernels, with the reference's tables of samples and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ...common.interpolation import resampling_tables
from .loader import codes
from .padding import take
from .pooling import boxes, floats
from .rows import OUT, native


def _kind(x: Any) -> Any:
    """The dtype the reference computes with."""
    return np.float32 if x.dtype in dt.HALF else x.dtype.np


@native("_resample", "take_by_tables", accepts=lambda x: x.dtype in codes and bool(x.numel), priority=11)
def nearest(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    if not mode.startswith("nearest"):
        return None
    tables: list[Any] = [None] * x.ndim
    for axis, index, _ in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x)):
        tables[axis] = index[:, 0]
    return take(x, tables)


@native("_resample_transpose", "box_sum", accepts=floats, priority=11)
def nearest_transpose(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    if not mode.startswith("nearest"):
        return None
    axes = [(np.arange(s), np.arange(s) + 1, None, None) for s in size]
    for axis, index, _ in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, _kind(x)):
        at, places = index[:, 0], np.arange(size[axis])
        axes[axis] = (np.searchsorted(at, places, "left"), np.searchsorted(at, places, "right"), None, None)
    return boxes(x, axes)


def _turned(index: Any, weight: Any, size: int) -> tuple[Any, Any]:
    """The transpose of a table: for each input the outputs it is part of."""
    inputs, outputs = index.reshape(-1), np.repeat(np.arange(len(index)), index.shape[1])
    parts = weight.reshape(-1)
    real = parts != 0
    inputs, outputs, parts = inputs[real], outputs[real], parts[real]
    order = np.argsort(inputs, kind="stable")
    inputs, outputs, parts = inputs[order], outputs[order], parts[order]
    counts = np.bincount(inputs, minlength=size)
    slot = np.arange(len(inputs)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(int(counts.max()), 1)
    at, by = np.zeros((size, most), np.int64), np.zeros((size, most))
    at[inputs, slot], by[inputs, slot] = outputs, parts
    # Unused slots repeat a neighbour's position, which is in the cache.
    return np.where(by != 0, at, at[:, :1]), by


def _arranged(x: Any, tables: dict[int, Any], sparse: bool) -> Any:
    arrays: list[Any] = []
    for axis in (-3, -2, -1):
        index, weight = tables.get(axis, (None, None))
        arrays += [
            None if index is None else np.ascontiguousarray(index, np.int64),
            None if weight is None else np.ascontiguousarray(weight, np.float64),
        ]
    return x, OUT, *arrays, int(sparse)


@native("_resample", "resample", accepts=floats)
def resample(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    tables = {
        axis: (index, weight)
        for axis, index, weight in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x))
    }
    return _arranged(x, tables, False)


@native("_resample_transpose", "resample", accepts=floats)
def resample_transpose(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
    tables = {
        axis: _turned(index, weight, size[axis])
        for axis, index, weight in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, _kind(x))
    }
    return _arranged(x, tables, True)
