"""Joining arrays, and copies of their pieces, on native kernels."""

from __future__ import annotations

from typing import Any

from ...common.slot import Slot
from .copy import known
from .rows import OUT, Out, native


@native("cat", "join", accepts=known)
def cat(tensors: Slot, dim: int) -> Any:
    return OUT, tensors, dim, 0


@native("stack", "join", accepts=known)
def stack(tensors: Slot, dim: int) -> Any:
    return OUT, tensors, dim, 1


@native("_split", "split", accepts=known)
def split(x: Slot, sizes: Any, dim: int) -> Any:
    return (*map(Out, range(len(sizes))), x, dim, 0) if len(sizes) <= 16 else None


@native("_unbind", "split", accepts=known)
def unbind(x: Slot, dim: int) -> Any:
    n = x.shape[dim]
    return (*map(Out, range(n)), x, dim, 1) if n <= 16 else None
