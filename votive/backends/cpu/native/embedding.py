"""Rows of a table on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float, known
from .rows import OUT, native


@native("_embedding", "embedding", accepts=known)
def embedding(weight: Slot, indices: Slot, padding_idx: int, scale_grad_by_freq: bool) -> Args:
    return OUT, weight, indices


@native("_embedding_backward", "embedding_backward", accepts=first_float)
def embedding_backward(g: Slot, indices: Slot, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Args:
    return OUT, g, indices, padding_idx, int(scale_grad_by_freq)
