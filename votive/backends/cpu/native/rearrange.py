"""Elements in other places on native kernels."""

from __future__ import annotations

from typing import Any

from ....core.layout import has_overlap
from ...common.slot import Slot
from .copy import known
from .rows import OUT, native


@native("_flip", "flip", accepts=known)
def flip(x: Slot, dims: Any) -> Any:
    return (OUT, x, *dims) if x.ndim else (OUT, x)


@native("roll", "roll", accepts=known)
def roll(x: Slot, shifts: Any, dims: Any) -> Any:
    if not dims or x.numel == 0:
        return None
    total: dict[int, int] = {}
    for d, s in zip(dims, shifts, strict=True):
        total[d] = (total.get(d, 0) + s) % x.shape[d]
    moved = [(d, s) for d, s in total.items() if s]
    return OUT, x, *[n for pair in moved for n in pair]


@native("roll", "roll_flat", accepts=known)
def roll_flat(x: Slot, shifts: Any, dims: Any) -> Any:
    if dims or not x.contiguous or x.numel == 0:
        return None
    return OUT, x, shifts[0] % x.numel


@native("_into_window", "into_window", accepts=known)
def into_window(x: Slot, size: Any, stride: Any, offset: int) -> Any:
    if has_overlap(x.shape, stride):
        return None
    item = x.dtype.itemsize
    return OUT, x, (offset if x.numel else 0) * item, *[s * item for s in stride]


@native("_write_window", "write_window", accepts=known)
def write_window(x: Slot, src: Slot, stride: Any, offset: int) -> Any:
    if has_overlap(src.shape, stride):
        return None
    item = x.dtype.itemsize
    return OUT, x, src, offset * item, *[s * item for s in stride]
