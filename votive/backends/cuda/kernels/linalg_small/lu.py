"""Elimination with row pivots, as LAPACK chooses them: factors, determinants, systems, inverses.

Rows stay where they are in registers; `place` says where each one belongs, so that a swap moves two numbers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m


@triton.jit
def start(batch, inner, outer_step, inner_step):
    """The offset of a program's operand."""
    return (batch // inner) * outer_step + (batch % inner) * inner_step


@triton.jit
def _pivot(a, j, place, k, rows):
    """(column k, its largest element from row k on, and the place of that; of the first of several)."""
    column = tl.sum(tl.where(j == k, a, 0.0), 1)
    live = (place >= k) & (place < rows)
    if a.dtype == tl.float32:
        # Size, place and sign in one number, so that one comparison finds all: bits of floats are ordered as they are.
        size = tl.abs(column).to(tl.int32, bitcast=True).to(tl.int64)
        key = (size << 32) | ((rows - place).to(tl.int64) << 1) | tl.where(column < 0, 1, 0)
        best = tl.max(tl.where(live, key, 0), 0)
        p = rows - ((best & 0xFFFFFFFF) >> 1).to(tl.int32)
        pivot = (best >> 32).to(tl.int32).to(tl.float32, bitcast=True)
        pivot = tl.where((best & 1) == 1, -pivot, pivot)
    else:
        size = tl.where(column == column, tl.abs(column), float("inf"))
        size = tl.where(live, size, -1.0)
        p = tl.min(tl.where(size == tl.max(size, 0), place, rows), 0)
        pivot = tl.sum(tl.where(place == p, column, 0.0), 0)
    return column, p, pivot


@triton.jit
def _eliminated(a, j, place, column, p, pivot, k):
    """(the matrix, places, factors of rows below) after step k."""
    chosen = place == p
    row = tl.sum(tl.where(chosen[:, None], a, 0.0), 0)
    place = tl.where(chosen, k, tl.where(place == k, p, place))
    below = place > k
    factor = m.f_div(column, tl.where(pivot == 0, 1.0, tl.zeros_like(column) + pivot))
    after = tl.where(j > k, a - factor[:, None] * row[None, :], tl.where(j == k, factor[:, None], a))
    return tl.where(below[:, None], after, a), place, factor


@triton.jit
def factor(lu, pivots, info, x, inner, outer_step, inner_step, row, col, rows, cols, M: tl.constexpr, N: tl.constexpr):
    # Grid: matrices.
    batch = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, M)
    i, j = tl.arange(0, M)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    a = tl.load(x + i * row + j * col, mask=(i < rows) & (j < cols), other=0.0)
    steps = tl.minimum(rows, cols)
    failed = tl.full((), 0, tl.int32)
    for k in range(steps):
        column, p, pivot = _pivot(a, j, place, k, rows)
        a, place, _ = _eliminated(a, j, place, column, p, pivot, k)
        failed = tl.where((pivot == 0) & (failed == 0), k + 1, failed)
        tl.store(pivots + batch * steps + k, p + 1)
    to = lu + batch * rows * cols + place[:, None] * cols + j
    tl.store(to, a, mask=(place[:, None] < rows) & (j < cols))
    tl.store(info + batch, failed)


@triton.jit
def determinant(o, logs, x, inner, outer_step, inner_step, row, col, n, LOGS: tl.constexpr, N: tl.constexpr):
    # Grid: matrices.
    batch = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, N)
    i, j = tl.arange(0, N)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    a = tl.load(x + i * row + j * col, mask=(i < n) & (j < n), other=0.0)
    total = tl.full((), 1.0, a.dtype)
    diagonal = tl.full((N,), 1.0, a.dtype)
    for k in range(n):
        column, p, pivot = _pivot(a, j, place, k, n)
        a, place, _ = _eliminated(a, j, place, column, p, pivot, k)
        diagonal = tl.where(tl.arange(0, N) == k, pivot, diagonal)
        if LOGS:
            pivot = tl.where(pivot > 0, 1.0, tl.where(pivot < 0, -1.0, pivot))
        total *= tl.where(p == k, pivot, -pivot)
    tl.store(o + batch, total)
    if LOGS:
        tl.store(logs + batch, tl.sum(m.f_log(tl.abs(diagonal)), 0))


@triton.jit
def _substituted(a, b, j, place, n):
    """X with U X = B, rows at their places."""
    for s in range(n):
        k = n - 1 - s
        column = tl.sum(tl.where(j == k, a, 0.0), 1)
        here = place == k
        pivot = tl.sum(tl.where(here, column, 0.0), 0)
        row = tl.sum(tl.where(here[:, None], b, 0.0), 0)
        row = m.f_div(row, tl.zeros_like(row) + pivot)
        rest = tl.where((place < k)[:, None], b - column[:, None] * row[None, :], b)
        b = tl.where(here[:, None], row[None, :], rest)
    return b


@triton.jit
def solve(
    o, info, x, y, inner, x_outer, x_inner, row, col, y_outer, y_inner, y_row, y_col, i_outer, i_inner, n, columns,
    INVERSE: tl.constexpr, N: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    # Grid: matrices, blocks of right sides. Each block repeats the elimination.
    batch = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, N)
    i, j = tl.arange(0, N)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    x += start(batch, inner, x_outer, x_inner)
    a = tl.load(x + i * row + j * col, mask=(i < n) & (j < n), other=0.0)
    c = tl.program_id(1) * R + tl.arange(0, R)[None, :].to(tl.int64)
    if INVERSE:
        b = tl.where(i == c, tl.full((N, R), 1.0, a.dtype), 0.0)
    else:
        y += start(batch, inner, y_outer, y_inner)
        b = tl.load(y + i * y_row + c * y_col, mask=(i < n) & (c < columns), other=0.0)
    failed = tl.full((), 0, tl.int32)
    for k in range(n):
        column, p, pivot = _pivot(a, j, place, k, n)
        side = tl.sum(tl.where((place == p)[:, None], b, 0.0), 0)
        a, place, factors = _eliminated(a, j, place, column, p, pivot, k)
        b = tl.where((place > k)[:, None], b - factors[:, None] * side[None, :], b)
        failed = tl.where((pivot == 0) & (failed == 0), k + 1, failed)
    b = _substituted(a, b, j, place, n)
    tl.store(o + (batch * n + place[:, None]) * columns + c, b, mask=(place[:, None] < n) & (c < columns))
    tl.store(info + start(batch, inner, i_outer, i_inner), failed)


@triton.jit
def cofactor(o, poor, x, inner, outer_step, inner_step, row, col, n, limit, N: tl.constexpr):
    # Grid: matrices. `poor`: where the inverse has lost more than half of its digits.
    batch = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, N)
    i, j = tl.arange(0, N)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    a = tl.load(x + i * row + j * col, mask=(i < n) & (j < n), other=0.0)
    b = tl.where(i == j, tl.full((N, N), 1.0, a.dtype), 0.0)
    norm = tl.max(tl.sum(tl.abs(a), 0), 0)
    finite = tl.min(tl.where(tl.abs(a) < float("inf"), 1, 0)) == 1
    total = tl.full((), 1.0, a.dtype)
    for k in range(n):
        column, p, pivot = _pivot(a, j, place, k, n)
        side = tl.sum(tl.where((place == p)[:, None], b, 0.0), 0)
        a, place, factors = _eliminated(a, j, place, column, p, pivot, k)
        b = tl.where((place > k)[:, None], b - factors[:, None] * side[None, :], b)
        total *= tl.where(p == k, pivot, -pivot)
    b = _substituted(a, b, j, place, n)
    inside = (place[:, None] < n) & (j < n)
    other = tl.max(tl.sum(tl.where(inside, tl.abs(b), 0.0), 0), 0)
    numbers = tl.min(tl.where(inside & (b != b), 0, 1)) == 1
    tl.store(o + batch * n * n + j * n + place[:, None], b * total, mask=inside)
    tl.store(poor + batch, tl.where(finite & ((norm * other < limit) & numbers == 0), 1, 0))
