"""Distances of points, natively."""

from __future__ import annotations

import math

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float
from .rows import OUT, native


@native("_cdist", "cdist", accepts=first_float)
def cdist(x1: Slot, x2: Slot, p: float, product: bool) -> Args:
    # Other powers take longer than the walk over memory that NumPy makes of them.
    return (OUT, x1, x2, p, int(product)) if p in (0, 1, 2, math.inf) else None
