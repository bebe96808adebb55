"""Variance and standard deviation, medians and modes."""

from __future__ import annotations

import math
from typing import Any

from ...common.slot import Slot
from ..programs.lane_reduction import variance
from ..programs.reduction import wide_type
from ..programs.types import Ints, Run, floats
from ..rows import cuda
from .sort.sorts import MEDIAN, NANMEDIAN, fits, mode, ranked


def _spread(x: Slot, dim: Ints, correction: float, root: bool) -> Any:
    n = math.prod(x.shape[d] for d in dim)
    if not math.prod(s for d, s in enumerate(x.shape) if d not in dim):
        return lambda outs, x: None
    run = variance(x.spec, dim, max(n - correction, 0.0), root, wide_type(x.dtype))
    return lambda outs, x: run(outs[0].ptr, x.ptr)


@cuda("_var", accepts=floats)
def var_(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Run:
    return _spread(x, dim, float(correction), False)


@cuda("_std", accepts=floats)
def std(x: Slot, dim: Ints, correction: float, keepdim: bool) -> Run:
    return _spread(x, dim, float(correction), True)


@cuda("_sample", accepts=fits)
def sample(x: Slot, kind: str, dim: int, keepdim: bool) -> Run:
    if kind == "mode":
        return mode(x, dim)
    return ranked(x, dim, MEDIAN if kind == "median" else NANMEDIAN)


@cuda("_median", accepts=lambda x: fits(x) and x.numel > 0)
def median(x: Slot, kind: str) -> Run:
    return ranked(x, None, MEDIAN if kind == "median" else NANMEDIAN)
