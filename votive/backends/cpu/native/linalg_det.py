"""Determinants of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .linalg_lu import filled
from .linalg_solve import LARGEST
from .rows import OUT, OUT1, native


@native("_det", "det", accepts=filled, optional=True)
def det(a: Slot) -> Args:
    return (a, OUT) if a.shape[-1] <= LARGEST else None


@native("_slogdet", "slogdet", accepts=filled, optional=True)
def slogdet(a: Slot) -> Args:
    return (a, OUT, OUT1) if a.shape[-1] <= LARGEST else None
