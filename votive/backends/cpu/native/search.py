"""Binary search and counting, natively."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import cpu
from ....core.errors import fail
from ....core.layout import Layout, Spec
from ...base import BACKENDS, kernel
from ...common.slot import Slot
from ..arrays import Args, Array
from .extremum import ordered
from .loader import codes, module
from .rows import OUT, native

_NARROW = (dt.float32, *dt.HALF)
_INTS = (dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8)


@native("_searchsorted", "searchsorted", accepts=lambda *specs: all(map(ordered, specs)))
def searchsorted(bounds: Slot, x: Slot, sorter: Slot | None, right: bool, dtype: dt.dtype) -> Args:
    if sorter is not None:
        return None
    if bounds.dtype in _INTS and x.dtype in _INTS:
        compared = dt.int64
    else:
        both = bounds.dtype in _NARROW and x.dtype in _NARROW
        compared = dt.float32 if both else dt.float64
    return bounds, x, OUT, codes[compared], int(right)


@native("_histc", "histc", accepts=lambda x: x.dtype in (*_NARROW, dt.float64))
def histc(x: Slot, bins: int, low: float, high: float) -> Args:
    return (x, OUT, bins, low, high) if x.contiguous else None


def _bincount(x: Array, weights: Array | None, minlength: int) -> Any:
    high = -1
    if x.size:
        extent = np.empty(2, np.int64)
        _extent(x, extent)
        low, high = extent.tolist()
        if low < 0:
            fail(RuntimeError, "bincount", f"values must not be negative, got {low}.")
    # The layout raises where 64 bits cannot count the bytes.
    dtype = dt.int64 if weights is None or not x.size else dt.from_numpy(weights.dtype)
    spec = Spec(Layout((max(high + 1, minlength),)), dtype, cpu)
    storage, counts = BACKENDS["cpu"].empty(spec)
    if x.size:
        _counts(x, weights, counts)
    else:
        counts.fill(0)
    return storage, counts, spec


if module is not None:
    _extent, _counts = module.Kernel("extent"), module.Kernel("bincount")
    kernel(
        "_bincount",
        priority=10,
        widen=False,
        label="native",
        accepts=lambda x, *weights: x.dtype in _INTS and all(w.dtype in codes for w in weights),
    )(_bincount)
