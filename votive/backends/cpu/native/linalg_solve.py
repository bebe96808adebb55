"""Small linear systems and inverses, natively; large ones are left to LAPACK."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .linalg_lu import filled
from .rows import OUT, OUT1, native

LARGEST = 256  # from here on LAPACK is as fast


@native("_solve", "linalg_solve", accepts=filled, optional=True)
def solve(a: Slot, b: Slot) -> Args:
    # A matrix for several right sides is factored once by the reference.
    same = a.shape[:-2] == b.shape[:-2] and a.dtype is b.dtype
    return (a, b, OUT, OUT1) if same and a.shape[-1] <= LARGEST else None


@native("_inv", "linalg_inv", accepts=filled, optional=True)
def inv(a: Slot) -> Args:
    return (a, OUT, OUT1) if a.shape[-1] <= LARGEST else None
