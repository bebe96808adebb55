"""Resizing by tables: which inputs each output is made of, and with which weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.interpolation import fixed_point, resampling_tables
from ..arrays import Array, Ints
from .padding import collect


def _along(vector: Array, axis: int) -> Any:
    return vector.reshape(-1, *(1,) * (-1 - axis))


def _mix(x: Array, index: Array, weight: Array, axis: int) -> Any:
    return sum(x.take(index[:, k], axis) * _along(weight[:, k], axis) for k in range(index.shape[1]))


@kernel("_resample")
def resample(x: Array, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Array:
    for axis, index, weight in resampling_tables(x.shape[2:], size, mode, align, smooth, scales, x.dtype):
        if mode.startswith("nearest"):
            x = x.take(index[:, 0], axis)
        elif x.dtype == np.uint8:
            weight, bits = fixed_point(index, weight)
            y = (_mix(x, index, weight, axis) + (1 << (bits - 1))) >> bits
            x = y.clip(0, 255).astype(np.uint8)
        else:
            x = _mix(x, index, weight, axis)
    return x


@kernel("_resample_transpose")
def resample_transpose(x: Array, size: Ints, mode: str, align: bool, smooth: bool, scales: tuple[float, ...]) -> Array:
    for axis, index, weight in resampling_tables(size, x.shape[2:], mode, align, smooth, scales, x.dtype):
        outputs = np.repeat(np.arange(len(index)), index.shape[1])
        parts = x.take(outputs, axis) * _along(weight.reshape(-1).astype(x.dtype), axis)
        x = collect(parts, index.reshape(-1), size[axis], axis)
    return x
