"""Triangular systems, natively: NumPy has none."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .linalg_lu import filled
from .rows import OUT, native


@native("_solve_triangular", "solve_triangular", accepts=filled, optional=True)
def solve_triangular(a: Slot, b: Slot, upper: bool, unit: bool) -> Args:
    return (a, b, OUT, int(upper), int(unit)) if a.dtype is b.dtype else None
