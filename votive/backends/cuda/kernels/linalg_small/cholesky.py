"""Cholesky factors: one column after the other is subtracted from the rest, which is held in registers. Also what
factors of the library lack.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m
from .lu import start


@triton.jit
def factor(o, info, x, inner, outer_step, inner_step, row, col, n, UPPER: tl.constexpr, N: tl.constexpr):
    # Grid: matrices. One triangle is read, mirrored; the other is written as zeros.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    i, j = tl.arange(0, N)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    inside = (i < n) & (j < n)
    low, high = tl.maximum(i, j), tl.minimum(i, j)
    if UPPER:
        low, high = high, low
    a = tl.load(x + low * row + high * col, mask=inside, other=0.0)
    failed = tl.full((), 0, tl.int32)
    for k in range(n):
        column = tl.sum(tl.where(j == k, a, 0.0), 1)
        pivot = tl.sum(tl.where(tl.arange(0, N) == k, column, 0.0), 0)
        failed = tl.where((failed == 0) & ((pivot > 0) == 0), k + 1, failed)
        size = m.f_sqrt(tl.zeros_like(column) + pivot)
        column = tl.where(tl.arange(0, N) == k, size, m.f_div(column, size))
        after = tl.where((i > k) & (j > k), a - column[:, None] * column[None, :], a)
        a = tl.where((i >= k) & (j == k), column[:, None], after)
    to = o + batch * n * n
    if UPPER:
        to += j * n + i
    else:
        to += i * n + j
    tl.store(to, tl.where(i >= j, a, 0.0), mask=inside)
    tl.store(info + batch, failed)


@triton.jit
def finish(o, info, n, down, UPPER: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
    # Grid: matrices, tiles of each. The other triangle becomes zero. A pivot that is no number is not positive, and
    # all that follow it are none either; the library may let them pass.
    batch, tile = tl.program_id(0).to(tl.int64), tl.program_id(1)
    o += batch * n * n
    i = (tile % down) * ROWS + tl.arange(0, ROWS)[:, None].to(tl.int64)
    j = (tile // down) * COLS + tl.arange(0, COLS)[None, :].to(tl.int64)
    away = i < j
    if UPPER:
        away = i > j
    tl.store(o + i * n + j, tl.zeros((ROWS, COLS), o.dtype.element_ty), mask=(i < n) & (j < n) & away)
    if tile == 0:
        count = tl.full((), 0, tl.int32)
        for first in range(0, n, COLS):
            k = first + tl.arange(0, COLS).to(tl.int64)
            pivot = tl.load(o + k * (n + 1), mask=k < n, other=1.0)
            count += tl.sum(tl.where(pivot == pivot, 0, 1), 0)
        told = tl.load(info + batch)
        tl.store(info + batch, tl.where((told == 0) & (count > 0), n + 1 - count, told))
