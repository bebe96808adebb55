"""Vector norms."""

from __future__ import annotations

import math

from ....formula import const, var
from ....formula.expr import apply
from ...common.slot import Slot
from ..programs.reduction import row_reducer
from ..programs.types import Run
from ..rows import cuda

_X = var("x")


@cuda("_vector_norm")
def vector_norm(x: Slot, ord: float, dim: tuple[int, ...], keepdim: bool) -> Run:
    if not x.dtype.is_floating_point:
        return None
    size = apply("abs", _X)
    if ord == math.inf:
        return row_reducer(x, dim, x.dtype, "max", size)
    if ord == -math.inf:
        return row_reducer(x, dim, x.dtype, "min", size)
    if ord == 0:
        return row_reducer(x, dim, x.dtype, "sum", apply("ne", _X, const(0.0)))
    if ord == 1:
        return row_reducer(x, dim, x.dtype, "sum", size)
    if ord == 2:
        return row_reducer(x, dim, x.dtype, "sum", apply("square", _X), apply("sqrt", _X))
    power = apply("pow", size, const(float(ord)))
    return row_reducer(x, dim, x.dtype, "sum", power, apply("pow", _X, const(1 / ord)))
