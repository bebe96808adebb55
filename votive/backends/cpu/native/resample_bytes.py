"""Resizing of bytes, natively, with the reference's tables of samples and 16-bit weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ...common.interpolation import fixed_point, resampling_tables
from .rows import OUT, native


@native(
    "_resample",
    "resample_bytes",
    priority=10,
    optional=True,
    accepts=lambda x: x.dtype is dt.uint8 and x.ndim == 4 and bool(x.numel),
)
def resample_bytes(x: Any, size: Any, mode: str, align: bool, smooth: bool, scales: Any) -> Any:
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
