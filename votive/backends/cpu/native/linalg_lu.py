"""LU factors, natively: NumPy has none."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, OUT1, OUT2, native


def filled(*specs: Spec) -> bool:
    """Matrices of real numbers, none empty."""
    return all(s.dtype in (dt.float32, dt.float64) and s.numel for s in specs)


@native("_lu_factor", "lu_factor", accepts=filled, optional=True)
def lu_factor(a: Slot) -> Args:
    return a, OUT, OUT1, OUT2
