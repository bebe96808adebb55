"""Joining arrays, and copies of their pieces, on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import known
from .rows import OUT, native


@native("cat", "join", accepts=known)
def cat(tensors: Slot, dim: int) -> Args:
    return OUT, tensors, dim, 0


@native("stack", "join", accepts=known)
def stack(tensors: Slot, dim: int) -> Args:
    return OUT, tensors, dim, 1
