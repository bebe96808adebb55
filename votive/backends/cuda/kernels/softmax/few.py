"""Softmax and its gradients of a few rows that are too long for registers: what a row has in common is found in
parts by all processors, and a second launch has a program for each piece of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from .....core.layout import Layout, Spec
from .....formula import Formula, var
from ...device import math as m
from ...programs.lane_reduction import exponentials_of_parts
from ...programs.layouts import next_power_of_two, row_stride, sizes
from ...programs.program import Program, pointer
from ...programs.reduction import reducer, wide_type
from ...programs.types import wide
from ...runtime import here_count
from ...runtime.views import View, empty

BLOCK = 4096


@triton.jit
def _softmax_of_parts(
    o, x, found, rows, n, so, sx, parts, LOG: tl.constexpr, WIDE: tl.constexpr, PARTS: tl.constexpr, BN: tl.constexpr
):
    # Grid: (pieces of a row, rows).
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    v = tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
    k = tl.arange(0, PARTS)
    top = tl.load(found + k * rows + row, mask=k < parts, other=-float("inf"))
    total = tl.load(found + (parts + k) * rows + row, mask=k < parts, other=0.0)

    highest = tl.max(top, 0)
    highest = tl.where(highest == -float("inf"), 0.0, highest)
    whole = tl.sum(total * m.f_exp(top - highest), 0)
    if LOG:
        y = v - highest - m.f_log(whole)
    else:
        y = m.f_exp(v - highest) / whole

    tl.store(o + row * so + i, y.to(o.dtype.element_ty), mask=i < n)


@triton.jit
def _backward_of_total(o, g, y, totals, n, so, sg, sy, LOG: tl.constexpr, WIDE: tl.constexpr, BN: tl.constexpr):
    # Grid: (pieces of a row, rows).
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    a = tl.load(g + row * sg + i, mask=i < n, other=0.0).to(WIDE)
    b = tl.load(y + row * sy + i, mask=i < n, other=0.0).to(WIDE)
    whole = tl.load(totals + row)

    if LOG:
        r = a - m.f_exp(b) * whole
    else:
        r = b * (a - whole)

    tl.store(o + row * so + i, r.to(o.dtype.element_ty), mask=i < n)


def forward(x: Spec, out: Spec, log: bool) -> Callable[..., None] | None:
    """launch(to, from) along the last dimension; None where rows are many."""
    rows, n = sizes(x)
    so, sx = row_stride(out), row_stride(x)
    kind = wide_type(x.dtype)
    find, parts = exponentials_of_parts(x, x.ndim - 1, kind)
    if find is None or rows > 65535:
        return None
    types = [pointer(out.dtype), pointer(x.dtype), pointer(kind), "i32", "i32", "i64", "i64", "i32"]
    fixed = {"LOG": log, "WIDE": wide(x.dtype), "PARTS": next_power_of_two(parts), "BN": BLOCK}
    program = Program(_softmax_of_parts, types, fixed, warps=8)
    program.divisible = tuple(k for k, v in ((4, n), (5, so), (6, sx)) if v is not None and v % 16 == 0)
    grid = (-(-n // BLOCK), rows)

    def launch(to: View, source: View) -> None:
        found = find(source.ptr)
        program(grid, to.ptr, source.ptr, found.ptr, rows, n, so, sx, parts)

    return launch


def backward(y: Spec, g: Spec, out: Spec, log: bool) -> Callable[..., None] | None:
    """launch(to, y, g); None where rows are many."""
    rows, n = sizes(y)
    if rows > 2 * here_count():
        return None
    so, sg, sy = row_stride(out), row_stride(g), row_stride(y)
    kind = wide_type(y.dtype)
    roles: list[Any] = [(g.dtype, kind, None), (y.dtype, kind, None)]
    a, b = var("a"), var("b")
    if log:
        total = reducer(
            "total", "sum", kind, Formula("g", ("a",), a), ["a"], roles[:1], [g], g.shape, (g.ndim - 1,), kind
        )
    else:
        body = Formula("gy", ("a", "b"), a * b)
        total = reducer("total", "sum", kind, body, ["a", "b"], roles, [g, y], g.shape, (g.ndim - 1,), kind)
    if total is None:
        return None
    sums = Spec(Layout((rows,)), kind, y.device)
    types = [pointer(out.dtype), pointer(g.dtype), pointer(y.dtype), pointer(kind), "i32", "i64", "i64", "i64"]
    program = Program(_backward_of_total, types, {"LOG": log, "WIDE": wide(y.dtype), "BN": BLOCK}, warps=8)
    numbers = ((4, n), (5, so), (6, sg), (7, sy))
    program.divisible = tuple(k for k, v in numbers if v is not None and v % 16 == 0)
    grid = (-(-n // BLOCK), rows)

    def launch(to: View, y: View, g: View) -> None:
        made = empty(sums)
        total(made.ptr, g.ptr) if log else total(made.ptr, g.ptr, y.ptr)
        program(grid, to.ptr, g.ptr, y.ptr, made.ptr, n, so, sg, sy)

    return launch
