"""Rows of a table on native kernels."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from .copy import known
from .rows import OUT, native


@native("_embedding", "embedding", accepts=known)
def embedding(weight: Slot, indices: Slot, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    return OUT, weight, indices


@native(
    "_embedding_backward",
    "embedding_backward",
    accepts=lambda g, indices: g.dtype in (dt.float32, dt.float64, *dt.HALF),
)
def embedding_backward(g: Slot, indices: Slot, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    return OUT, g, indices, padding_idx, int(scale_grad_by_freq)
