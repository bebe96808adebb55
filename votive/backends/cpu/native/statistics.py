"""Variance, median and mode, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .reduction import mask
from .rows import OUT, native


def _real(x: Any) -> bool:
    return x.dtype in (dt.float32, dt.float64, *dt.HALF)


@native("_var", "reduce_variance", accepts=_real)
def var(x: Any, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return x, OUT, None, mask(dim), 0, float(correction)


@native("_std", "reduce_variance", accepts=_real)
def std(x: Any, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return x, OUT, None, mask(dim), 1, float(correction)
