"""Variance and standard deviation: the mean first, then the distances from it. Medians and modes."""

from __future__ import annotations

import math
from typing import Any

from ....core.layout import reduced_shape
from ....formula import Formula, const, var
from ....formula.expr import apply
from ...common.slot import Slot
from ..programs.reduction import reducer, row_reducer, wide_type
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty
from .sort.sorts import MEDIAN, NANMEDIAN, fits, mode, ranked

_X, _M = var("x"), var("mean")


def _spread(x: Slot, dim: tuple[int, ...], correction: float, root: bool) -> Any:
    n = math.prod(x.shape[d] for d in dim)
    wide = wide_type(x.dtype)
    mean = x.spec.like(reduced_shape(x.shape, dim, True), dtype=wide)
    if not mean.numel:
        return lambda outs, x: None
    middle = row_reducer(x, dim, wide, "sum", finish=apply("div", _X, const(float(n))))
    left = max(n - correction, 0.0)
    finish = apply("div", _X, const(float(left)))
    body = apply("square", apply("sub", _X, _M))
    run = reducer(
        "std" if root else "var",
        "sum",
        wide,
        Formula("away", ("x", "mean"), body),
        ["x", "mean"],
        [(x.dtype, wide, None), (wide, wide, None)],
        [x.spec, mean],
        x.shape,
        dim,
        x.dtype,
        Formula("finish", ("x",), apply("sqrt", finish) if root else finish),
    )
    if run is None or middle is None:
        return None

    def launch(outs: list[View], x: View) -> None:
        m = empty(mean)
        middle([m], x)
        run(outs[0].ptr, x.ptr, m.ptr)

    return launch


@cuda("_var", accepts=floats)
def var_(x: Slot, dim: tuple[int, ...], correction: float, keepdim: bool) -> Run:
    return _spread(x, dim, float(correction), False)


@cuda("_std", accepts=floats)
def std(x: Slot, dim: tuple[int, ...], correction: float, keepdim: bool) -> Run:
    return _spread(x, dim, float(correction), True)


@cuda("_sample", accepts=fits)
def sample(x: Slot, kind: str, dim: int, keepdim: bool) -> Run:
    if kind == "mode":
        return mode(x, dim)
    return ranked(x, dim, MEDIAN if kind == "median" else NANMEDIAN)


@cuda("_median", accepts=lambda x: fits(x) and x.numel > 0)
def median(x: Slot, kind: str) -> Run:
    return ranked(x, None, MEDIAN if kind == "median" else NANMEDIAN)
