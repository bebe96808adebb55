"""Linear filters in time, natively."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float, same_float
from .rows import OUT, native


@native("_lfilter", "lfilter", accepts=first_float, optional=True)
def lfilter(x: Slot, a: Slot, b: Slot, reverse: bool) -> Args:
    return x, a, b, OUT, int(reverse)


@native("_lag_products", "lag_products", accepts=same_float, optional=True)
def lag_products(g: Slot, x: Slot, taps: int, reverse: bool) -> Args:
    return g, x, OUT, int(reverse)
