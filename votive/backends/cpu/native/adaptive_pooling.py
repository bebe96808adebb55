"""Adaptive pooling on native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.slot import Slot
from ..arrays import Args, Ints
from ..reference.pooling import covering
from .pooling import boxes, filled_floats
from .rows import OUT, OUT1, native


def _ranges(size: int, places: int) -> tuple[Any, Any]:
    at = np.arange(places)
    return at * size // places, -((at + 1) * -size // places)


@native("_adaptive_avg_pool", "box_sum", accepts=filled_floats)
def adaptive_avg_pool(x: Slot, size: Ints) -> Args:
    if 0 in size:
        return None
    axes = []
    for i, o in zip(x.shape[-len(size) :], size, strict=True):
        start, end = _ranges(i, o)
        axes.append((start, end, None, end - start))
    return boxes(x, axes)


@native("_adaptive_avg_pool_transpose", "box_sum", accepts=filled_floats)
def adaptive_avg_pool_transpose(x: Slot, size: Ints) -> Args:
    if 0 in size:
        return None
    axes = []
    for i, o in zip(size, x.shape[-len(size) :], strict=True):
        start, end = _ranges(i, o)
        axes.append((*covering(start, end, i), end - start, None))
    return boxes(x, axes)


@native("_adaptive_max_pool", "max_of_boxes", accepts=filled_floats)
def adaptive_max_pool(x: Slot, size: Ints) -> Args:
    if 0 in size:
        return None
    tables = [np.array([0]), np.array([1])] * (3 - len(size))
    for i, o in zip(x.shape[-len(size) :], size, strict=True):
        tables += _ranges(i, o)
    return x, OUT, OUT1, *(np.ascontiguousarray(t, np.int64) for t in tables), len(size)
