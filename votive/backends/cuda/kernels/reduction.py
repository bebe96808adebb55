"""Sums, products, tests and counts over dimensions, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import const, var
from ....formula.expr import apply
from ...common.slot import Slot
from ..programs import lane_reduction
from ..programs.copy import copy_view
from ..programs.program import TYPE
from ..programs.reduction import row_reducer, wide_type
from ..programs.types import Ints, Run
from ..rows import cuda
from ..runtime.views import View, empty

_X = var("x")


@cuda("sum")
def sum_(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    if dtype is dt.bool_:
        return row_reducer(x, dim, dtype, "any", apply("ne", _X, const(0)))
    return row_reducer(x, dim, dtype, "sum")


@cuda("nansum")
def nansum(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    if not x.dtype.is_floating_point:
        return sum_(x, dim, keepdim, dtype)
    if not dtype.is_floating_point:
        return None
    return row_reducer(x, dim, dtype, "sum", apply("where", apply("isnan", _X), const(0.0), _X))


@cuda("mean")
def mean(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Run:
    if not dtype.is_floating_point:
        return None
    n = _count(x.shape, dim)
    return row_reducer(x, dim, dtype, "sum", finish=apply("div", _X, const(float(n))))


@cuda("prod")
def prod(x: Slot, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Run:
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    if dtype is dt.bool_:
        return row_reducer(x, dims, dtype, "all", apply("ne", _X, const(0)))
    return row_reducer(x, dims, dtype, "prod")


@cuda("all")
def all_(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return row_reducer(x, dim, dt.bool_, "all", apply("ne", _X, const(0)), compute=dt.int32)


@cuda("any")
def any_(x: Slot, dim: Ints, keepdim: bool) -> Run:
    return row_reducer(x, dim, dt.bool_, "any", apply("ne", _X, const(0)), compute=dt.int32)


@cuda("count_nonzero")
def count_nonzero(x: Slot, dim: Ints) -> Run:
    return row_reducer(x, dim, dt.int64, "sum", apply("ne", _X, const(0)))


def _of_integers(made: Spec, dim: Ints, keepdim: bool) -> Any:
    run = logsumexp(Slot(0, made), dim, keepdim)
    if run is None:
        return None

    def cast(outs: list[View], x: View) -> None:
        floats = empty(made)
        copy_view(floats, x)
        run(outs, floats)

    return cast


@cuda("logsumexp", accepts=lambda x: x.dtype in TYPE)
def logsumexp(x: Slot, dim: Ints, keepdim: bool) -> Run:
    spec: Spec = x.spec
    if not spec.dtype.is_floating_point:
        return _of_integers(spec.like(spec.shape, dtype=dt.get_default_dtype()), dim, keepdim)
    if not spec.numel:
        return None
    run = lane_reduction.logsumexp(spec, dim, wide_type(spec.dtype))
    return lambda outs, x: run(outs[0].ptr, x.ptr)


def _count(shape: Ints, dims: Ints) -> int:
    return math.prod(shape[d] for d in dims)
