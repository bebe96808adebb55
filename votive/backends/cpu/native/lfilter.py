"""Linear filters in time, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native

_FLOATS = (dt.float32, dt.float64, *dt.HALF)


@native("_lfilter", "lfilter", accepts=lambda x, a, b: x.dtype in _FLOATS, optional=True)
def lfilter(x: Any, a: Any, b: Any, reverse: bool) -> Any:
    return x, a, b, OUT, int(reverse)


@native("_lag_products", "lag_products", accepts=lambda g, x: x.dtype in _FLOATS and g.dtype is x.dtype, optional=True)
def lag_products(g: Any, x: Any, taps: int, reverse: bool) -> Any:
    return g, x, OUT, int(reverse)
