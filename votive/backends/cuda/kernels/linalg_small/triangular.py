"""Triangular systems: right sides in registers, columns of the triangle read one after the other."""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m
from .lu import start


@triton.jit
def _read(a, i, k, row, col, n, UPPER: tl.constexpr, UNIT: tl.constexpr):
    """(column k of the triangle without its diagonal, the element on that)."""
    rest = (i > k) & (i < n)
    if UPPER:
        rest = i < k
    column = tl.load(a + i.to(tl.int64) * row + k * col, mask=rest, other=0.0)
    pivot = tl.zeros((), a.dtype.element_ty)
    if not UNIT:
        pivot = tl.load(a + k * (row + col))
    return column, pivot


@triton.jit
def _substituted(b, a, row, col, n, N: tl.constexpr, UPPER: tl.constexpr, UNIT: tl.constexpr):
    i = tl.arange(0, N)
    first, step = 0, 1
    if UPPER:
        first, step = n - 1, -1
    # What the next step needs is read while this one is computed.
    column, pivot = _read(a, i, first, row, col, n, UPPER, UNIT)
    for s in range(n):
        k = first + s * step
        following = tl.minimum(tl.maximum(k + step, 0), n - 1)
        next_column, next_pivot = _read(a, i, following, row, col, n, UPPER, UNIT)
        here = (i == k)[:, None]
        line = tl.sum(tl.where(here, b, 0.0), 0)
        if not UNIT:
            line = m.f_div(line, tl.zeros_like(line) + pivot)
        rest = i > k
        if UPPER:
            rest = i < k
        after = tl.where(rest[:, None], b - column[:, None] * line[None, :], b)
        b = tl.where(here, line[None, :], after)
        column, pivot = next_column, next_pivot
    return b


@triton.jit
def solve(
    o, x, y, inner, x_outer, x_inner, row, col, y_outer, y_inner, y_row, y_col, n, columns,
    UPPER: tl.constexpr, UNIT: tl.constexpr, TWICE: tl.constexpr, IDENTITY: tl.constexpr,
    N: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    # Grid: matrices, blocks of right sides. `TWICE`: then by the transpose, as Cholesky factors are used;
    # of an upper factor the transpose comes first.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, x_outer, x_inner)
    i = tl.arange(0, N)[:, None].to(tl.int64)
    c = tl.program_id(1) * R + tl.arange(0, R)[None, :].to(tl.int64)
    inside = (i < n) & (c < columns)
    if IDENTITY:
        b = tl.where(i == c, tl.full((N, R), 1.0, o.dtype.element_ty), 0.0)
    else:
        y += start(batch, inner, y_outer, y_inner)
        b = tl.load(y + i * y_row + c * y_col, mask=inside, other=0.0)
    if TWICE and UPPER:
        b = _substituted(b, x, col, row, n, N, False, UNIT)
    b = _substituted(b, x, row, col, n, N, UPPER, UNIT)
    if TWICE and not UPPER:
        b = _substituted(b, x, col, row, n, N, True, UNIT)
    tl.store(o + (batch * n + i) * columns + c, b, mask=inside)
