"""Copies of the pieces of arrays on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known
from .rows import Out, native


@native("_split", "split", accepts=known)
def split(x: Slot, sizes: Ints, dim: int) -> Args:
    return (*map(Out, range(len(sizes))), x, dim, 0) if len(sizes) <= 16 else None


@native("_unbind", "split", accepts=known)
def unbind(x: Slot, dim: int) -> Args:
    n = x.shape[dim]
    return (*map(Out, range(n)), x, dim, 1) if n <= 16 else None
