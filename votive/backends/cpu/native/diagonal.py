"""Triangles of matrices on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import known
from .rows import OUT, native


@native("tril", "triangle", accepts=known)
def tril(x: Slot, diagonal: int) -> Args:
    return OUT, x, diagonal, 1


@native("triu", "triangle", accepts=known)
def triu(x: Slot, diagonal: int) -> Args:
    return OUT, x, diagonal, 0
