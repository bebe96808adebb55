"""Frames that overlap, added up where they lie in a signal, natively."""

from __future__ import annotations

from math import prod
from typing import Any

from ....core import dtype as dt
from ....core.layout import has_overlap
from ...common.slot import Slot
from .rows import OUT, native

_TYPES = (dt.float32, dt.float64, dt.complex64, dt.complex128)


@native(
    "_into_window",
    "overlap_add",
    accepts=lambda x: x.dtype in _TYPES and x.ndim >= 2,
    priority=9,  # what does not overlap is only moved
    optional=True,
)
def overlap_add(x: Slot, size: Any, stride: Any, offset: int) -> Any:
    *outer, frames, length = x.shape
    *steps, hop, one = stride
    if one != 1 or hop < 1 or not x.numel:
        return None
    extent = (frames - 1) * hop + length
    # Signals must lie apart, for they are added up by different threads.
    if has_overlap((*outer, extent), (*steps, 1)):
        return None
    return OUT, x, offset, hop, prod(outer), *steps
