"""Resizing on native kernels, with the reference's tables of samples and weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ...common.interpolation import fixed_point, resampling_tables, transposed_table
from ...common.slot import Slot
from ..arrays import Args, Ints
from .loader import codes
from .padding import take
from .pooling import boxes, filled_floats
from .rows import OUT, native


def _kind(x: Slot) -> Any:
    """The dtype the reference computes with."""
    return np.float32 if x.dtype in dt.HALF else x.dtype.np


@native("_resample", "take_by_tables", accepts=lambda x: x.dtype in codes and bool(x.numel), priority=11)
def nearest(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Args:
    if not mode.startswith("nearest"):
        return None
    tables: list[Any] = [None] * x.ndim
    for axis, index, _ in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x)):
        tables[axis] = index[:, 0]
    return take(x, tables)


@native("_resample_transpose", "box_sum", accepts=filled_floats, priority=11)
def nearest_transpose(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Args:
    if not mode.startswith("nearest"):
        return None
    axes = [(np.arange(s), np.arange(s) + 1, None, None) for s in size]
    for axis, index, _ in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, _kind(x)):
        at, places = index[:, 0], np.arange(size[axis])
        axes[axis] = (np.searchsorted(at, places, "left"), np.searchsorted(at, places, "right"), None, None)
    return boxes(x, axes)


def _arranged(x: Slot, tables: dict[int, Any], sparse: bool) -> Any:
    arrays: list[Any] = []
    for axis in (-3, -2, -1):
        index, weight = tables.get(axis, (None, None))
        arrays += [
            None if index is None else np.ascontiguousarray(index, np.int64),
            None if weight is None else np.ascontiguousarray(weight, np.float64),
        ]
    return x, OUT, *arrays, int(sparse)


@native("_resample", "resample", accepts=filled_floats)
def resample(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Args:
    tables = {
        axis: (index, weight)
        for axis, index, weight in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, _kind(x))
    }
    return _arranged(x, tables, False)


@native("_resample_transpose", "resample", accepts=filled_floats)
def resample_transpose(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Args:
    tables = {
        axis: transposed_table(index, weight, size[axis])
        for axis, index, weight in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, _kind(x))
    }
    return _arranged(x, tables, True)


@native(
    "_resample",
    "resample_bytes",
    priority=10,
    optional=True,
    accepts=lambda x: x.dtype is dt.uint8 and x.ndim == 4 and bool(x.numel),
)
def resample_bytes(x: Slot, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Args:
    if mode.startswith("nearest"):
        return None
    arrays: dict[int, list[Any]] = {-2: [None, None], -1: [None, None]}
    bits = {-2: 0, -1: 0}
    for axis, index, weight in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, np.uint8):
        fixed, bits[axis] = fixed_point(index, weight)
        if bits[axis] < 1:
            return None
        # Tap by tap, so that neighbours in memory belong to neighbouring outputs.
        arrays[axis] = [np.ascontiguousarray(t.T, np.int32) for t in (index, fixed)]
    return x, OUT, *arrays[-2], *arrays[-1], bits[-2], bits[-1]
