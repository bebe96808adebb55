"""Variance, median and mode, natively."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import first_float
from .reduction import mask
from .rows import OUT, OUT1, native
from .sort import MEDIAN, MODE, NANMEDIAN, fits

_RANKS = {"median": MEDIAN, "nanmedian": NANMEDIAN, "mode": MODE}


@native("_var", "reduce_variance", accepts=first_float)
def var(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Args:
    return x, OUT, None, mask(dim), 0, float(correction)


@native("_std", "reduce_variance", accepts=first_float)
def std(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Args:
    return x, OUT, None, mask(dim), 1, float(correction)


@native("_sample", "rank", accepts=fits)
def sample(x: Slot, kind: str, dim: int, keepdim: bool) -> Args:
    return x, OUT, OUT1, dim, _RANKS[kind], 0


@native("_median", "rank", accepts=lambda x: fits(x) and x.contiguous and x.numel > 0)
def median(x: Slot, kind: str) -> Args:
    return x, OUT, None, -1, _RANKS[kind], 0
