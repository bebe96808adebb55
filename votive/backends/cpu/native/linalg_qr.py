"""QR factors of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .linalg_lu import filled
from .rows import OUT, OUT1, native

LARGEST = 96  # from here on LAPACK, which works on blocks, is as fast


@native("_qr", "linalg_qr", accepts=filled, optional=True)
def qr(a: Slot, mode: str) -> Args:
    return (a, OUT, OUT1) if max(a.shape[-2:]) <= LARGEST else None
