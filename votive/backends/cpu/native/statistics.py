"""Variance, median and mode, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .reduction import mask
from .rows import OUT, OUT1, native
from .sort import MEDIAN, MODE, NANMEDIAN, fits

_RANKS = {"median": MEDIAN, "nanmedian": NANMEDIAN, "mode": MODE}


def _real(x: Any) -> bool:
    return x.dtype in (dt.float32, dt.float64, *dt.HALF)


@native("_var", "reduce_variance", accepts=_real)
def var(x: Any, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return x, OUT, None, mask(dim), 0, float(correction)


@native("_std", "reduce_variance", accepts=_real)
def std(x: Any, dim: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    return x, OUT, None, mask(dim), 1, float(correction)


@native("_sample", "rank", accepts=fits)
def sample(x: Any, kind: str, dim: int, keepdim: bool) -> Any:
    return x, OUT, OUT1, dim, _RANKS[kind], 0


@native("_median", "rank", accepts=lambda x: fits(x) and x.contiguous and x.numel > 0)
def median(x: Any, kind: str) -> Any:
    return x, OUT, None, -1, _RANKS[kind], 0
