"""Written through a window on memory, on native kernels: moved, or added up where windows overlap."""

from __future__ import annotations

from math import prod

from ....core import dtype as dt
from ....core.layout import has_overlap
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known
from .rows import OUT, native

_TYPES = (dt.float32, dt.float64, dt.complex64, dt.complex128)


@native("_into_window", "into_window", accepts=known)
def into_window(x: Slot, size: Ints, stride: Ints, offset: int) -> Args:
    if has_overlap(x.shape, stride):
        return None
    item = x.dtype.itemsize
    return OUT, x, (offset if x.numel else 0) * item, *[s * item for s in stride]


@native(
    "_into_window",
    "overlap_add",
    accepts=lambda x: x.dtype in _TYPES and x.ndim >= 2,
    priority=9,  # what does not overlap is only moved
    optional=True,
)
def overlap_add(x: Slot, size: Ints, stride: Ints, offset: int) -> Args:
    *outer, frames, length = x.shape
    *steps, hop, one = stride
    if one != 1 or hop < 1 or not x.numel:
        return None
    extent = (frames - 1) * hop + length
    # Signals must lie apart, for they are added up by different threads.
    if has_overlap((*outer, extent), (*steps, 1)):
        return None
    return OUT, x, offset, hop, prod(outer), *steps
