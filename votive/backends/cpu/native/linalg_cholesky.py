"""Cholesky factors of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .linalg_lu import filled
from .rows import OUT, OUT1, native

LARGEST = 48


@native("_cholesky", "cholesky", accepts=filled, optional=True)
def cholesky(a: Slot, upper: bool) -> Args:
    return (a, OUT, OUT1, int(upper)) if a.shape[-1] <= LARGEST else None
