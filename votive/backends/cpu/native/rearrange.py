"""Elements in other places on native kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known, nonempty
from .rows import OUT, native


@native("_flip", "flip", accepts=known)
def flip(x: Slot, dims: Ints) -> Args:
    return (OUT, x, *dims) if x.ndim else (OUT, x)


@native("roll", "roll", accepts=known)
def roll(x: Slot, shifts: Ints, dims: Ints) -> Args:
    if not dims or x.numel == 0:
        return None
    total: dict[int, int] = {}
    for d, s in zip(dims, shifts, strict=True):
        total[d] = (total.get(d, 0) + s) % x.shape[d]
    moved = [(d, s) for d, s in total.items() if s]
    return OUT, x, *[n for pair in moved for n in pair]


@native("roll", "roll_flat", accepts=known)
def roll_flat(x: Slot, shifts: Ints, dims: Ints) -> Args:
    if dims or not x.contiguous or x.numel == 0:
        return None
    return OUT, x, shifts[0] % x.numel


@native("constant_pad_nd", "pad_constant", accepts=nonempty)
def constant_pad_nd(x: Slot, pad: Ints, value: Slot) -> Args:
    if x.dtype in (dt.complex64, dt.complex128) or not 0 < x.ndim <= 8:
        return None
    tables: list[Any] = [None] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        size = x.shape[-1 - i]
        if before or after:
            at = np.arange(-before, size + after)
            if not len(at):
                return None
            tables[-1 - i] = np.ascontiguousarray(np.where((at >= 0) & (at < size), at, -1), np.int64)
    return x, OUT, *tables, value
