"""Sums, products, tests and counts over dimensions, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import const, var
from ....formula.expr import apply
from ...common.slot import Slot
from ..device import math as m
from ..programs.copy import copy_view
from ..programs.layouts import contiguous, row_block, row_stride
from ..programs.program import TYPE, Program, pointer
from ..programs.reduction import row_reducer
from ..programs.types import Run, wide
from ..rows import cuda
from ..runtime.views import View, empty

_X = var("x")


@cuda("sum")
def sum_(x: Slot, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Run:
    if dtype is dt.bool_:
        return row_reducer(x, dim, dtype, "any", apply("ne", _X, const(0)))
    return row_reducer(x, dim, dtype, "sum")


@cuda("nansum")
def nansum(x: Slot, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Run:
    if not x.dtype.is_floating_point:
        return sum_(x, dim, keepdim, dtype)
    if not dtype.is_floating_point:
        return None
    return row_reducer(x, dim, dtype, "sum", apply("where", apply("isnan", _X), const(0.0), _X))


@cuda("mean")
def mean(x: Slot, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Run:
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
def all_(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, dt.bool_, "all", apply("ne", _X, const(0)), compute=dt.int32)


@cuda("any")
def any_(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, dt.bool_, "any", apply("ne", _X, const(0)), compute=dt.int32)


@cuda("count_nonzero")
def count_nonzero(x: Slot, dim: tuple[int, ...]) -> Run:
    return row_reducer(x, dim, dt.int64, "sum", apply("ne", _X, const(0)))


@triton.jit
def _logsumexp(o, x, rows, n, sx, WIDE: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BN,), -float("inf"), WIDE)
    total = tl.zeros((BN,), WIDE)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        v = tl.load(x + row * sx + i, mask=i < n, other=-float("inf")).to(WIDE)
        higher = m.f_maximum(top, v)
        base = tl.where(tl.abs(higher) == float("inf"), 0.0, higher)
        total = total * m.f_exp(top - base) + m.f_exp(v - base)
        top = higher
    highest = tl.max(top, 0)
    base = tl.where(tl.abs(highest) == float("inf"), 0.0, highest)
    whole = tl.sum(total * m.f_exp(top - base), 0)
    tl.store(o + row, (m.f_log(whole) + base).to(o.dtype.element_ty))


def _of_integers(made: Spec, dim: tuple[int, ...], keepdim: bool) -> Any:
    run = logsumexp(Slot(0, made), dim, keepdim)
    if run is None:
        return None

    def cast(outs: list[View], x: View) -> None:
        floats = empty(made)
        copy_view(floats, x)
        run(outs, floats)

    return cast


@cuda("logsumexp", accepts=lambda x: x.dtype in TYPE)
def logsumexp(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    """The reduced dimensions are brought to the end; several are joined by a copy."""
    spec: Spec = x.spec
    if not spec.dtype.is_floating_point:
        return _of_integers(spec.like(spec.shape, dtype=dt.get_default_dtype()), dim, keepdim)
    kept = [d for d in range(spec.ndim) if d not in dim]
    order = [*kept, *dim]
    shape = tuple(spec.shape[d] for d in order)
    permuted = spec.like(shape, strides=tuple(spec.strides[d] for d in order))
    rows = math.prod(spec.shape[d] for d in kept)
    n = math.prod(spec.shape[d] for d in dim)
    if not rows or not n:
        return None
    flat = row_stride(permuted, len(dim))
    source = permuted if flat is not None else permuted.like(shape)
    distance = row_stride(source, len(dim))
    bn, warps = row_block(n, 4096)
    program = Program(
        _logsumexp,
        [pointer(spec.dtype), pointer(spec.dtype), "i32", "i32", "i64"],
        {"WIDE": wide(spec.dtype), "BN": bn},
        warps=warps,
    )

    def run(outs: list[View], x: View) -> None:
        v = View(x.ptr, permuted, x.storage)
        if flat is None:
            v = contiguous(v)
        program((rows,), outs[0].ptr, v.ptr, rows, n, distance)

    return run


def _count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    return math.prod(shape[d] for d in dims)
