"""Lengths of vectors, natively."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import first_float, wide
from .reduction import MAX_ABS, MIN_ABS, SUM, SUM_ABS, SUM_SQUARE, arranged
from .rows import native


@native("_vector_norm", "reduce", accepts=first_float)
def vector_norm(x: Slot, ord: float, dim: Ints, keepdim: bool) -> Args:
    compute = wide(x.dtype)
    alone = x.numel > 0 and all(x.shape[d] == 1 for d in dim)
    if ord == math.inf or (alone and ord not in (0, -math.inf)):  # one number is as long as it is large
        return arranged(x, dim, MAX_ABS, compute)
    if ord == -math.inf:
        return arranged(x, dim, MIN_ABS, compute)
    if ord == 0:
        return arranged(x, dim, SUM, dt.bool_)
    if ord == 1:
        return arranged(x, dim, SUM_ABS, compute)
    if ord == 2:
        return arranged(x, dim, SUM_SQUARE, compute, root=0.5)
    return arranged(x, dim, SUM, compute, root=1 / ord, power=ord)
