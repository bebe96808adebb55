"""Householder reflections with LAPACK's signs: R, the reflectors, and Q as their product."""

from __future__ import annotations

import triton
import triton.language as tl

from ...device import math as m
from .lu import start


@triton.jit
def _reflection(a, j, k, M: tl.constexpr):
    """(v, tau, the diagonal element of R) of `1 - tau v v'`, which clears column k below the diagonal."""
    i = tl.arange(0, M)
    column = tl.sum(tl.where(j == k, a, 0.0), 1)
    rest = tl.where(i > k, column, 0.0)
    # By the largest element, or squares leave the range of the type. Numbers are held as vectors of equal ones.
    most = tl.max(tl.where(i >= k, tl.abs(column), 0.0), 0)
    scale = tl.zeros_like(column) + tl.where((most > 0) & (most < float("inf")), most, 1.0)
    first = tl.zeros_like(column) + tl.sum(tl.where(i == k, column, 0.0), 0)
    part = m.f_div(rest, scale)
    tail = tl.zeros_like(column) + tl.sum(part * part, 0)
    head = m.f_div(first, scale)
    size = scale * m.f_sqrt(head * head + tail)
    none = tail == 0  # nothing to clear: no reflection, and no change of sign
    size = tl.where(none, first, tl.where(first < 0, size, -size))
    tau = tl.where(none, 0.0, m.f_div(size - first, tl.where(none, 1.0, size)))
    v = m.f_div(rest, tl.where(none, 1.0, first - size))
    v = tl.where(i == k, 1.0, v)
    pick = i == k
    return v, tl.sum(tl.where(pick, tau, 0.0), 0), tl.sum(tl.where(pick, size, 0.0), 0)


@triton.jit
def factor(
    q, r, packed, taus, x, inner, outer_step, inner_step, row, col, rows, cols, wide,
    PACKED: tl.constexpr, TRIANGLE: tl.constexpr, VECTORS: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    # Grid: matrices. `PACKED`: R and the reflectors in one matrix, with their taus, as geqrf gives them.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, outer_step, inner_step)
    i, j = tl.arange(0, M)[:, None].to(tl.int64), tl.arange(0, N)[None, :].to(tl.int64)
    a = tl.load(x + i * row + j * col, mask=(i < rows) & (j < cols), other=0.0)
    steps = tl.minimum(rows, cols)
    kept = tl.zeros((N,), a.dtype)
    for k in range(steps):
        v, tau, size = _reflection(a, j, k, M)
        along = tau * tl.sum(v[:, None] * tl.where(i >= k, a, 0.0), 0)
        after = tl.where((i >= k) & (j > k), a - v[:, None] * along[None, :], a)
        a = tl.where((i > k) & (j == k), v[:, None], tl.where((i == k) & (j == k), size, after))
        kept = tl.where(tl.arange(0, N) == k, tau, kept)
    if PACKED:
        tl.store(packed + batch * rows * cols + i * cols + j, a, mask=(i < rows) & (j < cols))
        n = tl.arange(0, N)
        tl.store(taus + batch * steps + n, kept, mask=n < steps)
    if TRIANGLE:
        to = r + batch * wide * cols + i * cols + j
        tl.store(to, tl.where(i <= j, a, 0.0), mask=(i < wide) & (j < cols))
    if VECTORS:
        c = tl.arange(0, W)[None, :].to(tl.int64)
        b = tl.where(i == c, tl.full((M, W), 1.0, a.dtype), 0.0)
        for s in range(steps):
            k = steps - 1 - s
            column = tl.sum(tl.where(j == k, a, 0.0), 1)
            place = tl.arange(0, M)
            v = tl.where(place > k, column, tl.where(place == k, 1.0, 0.0))
            tau = tl.sum(tl.where(tl.arange(0, N) == k, kept, 0.0), 0)
            along = tau * tl.sum(v[:, None] * b, 0)
            b -= v[:, None] * along[None, :]
        tl.store(q + batch * rows * wide + i * wide + c, b, mask=(i < rows) & (c < wide))


@triton.jit
def reflect(
    o, x, taus, y, inner, x_outer, x_inner, row, col, t_outer, t_inner, t_step, y_outer, y_inner, y_row, y_col,
    rows, columns, steps, BACK: tl.constexpr, IDENTITY: tl.constexpr, M: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    # Grid: matrices, blocks of columns. `BACK`: by the transpose, so the first reflection comes first.
    batch = tl.program_id(0).to(tl.int64)
    x += start(batch, inner, x_outer, x_inner)
    taus += start(batch, inner, t_outer, t_inner)
    place = tl.arange(0, M)
    i = place[:, None].to(tl.int64)
    c = tl.program_id(1) * R + tl.arange(0, R)[None, :].to(tl.int64)
    inside = (i < rows) & (c < columns)
    if IDENTITY:
        b = tl.where(i == c, tl.full((M, R), 1.0, o.dtype.element_ty), 0.0)
    else:
        y += start(batch, inner, y_outer, y_inner)
        b = tl.load(y + i * y_row + c * y_col, mask=inside, other=0.0)
    for s in range(steps):
        k = steps - 1 - s
        if BACK:
            k = s
        v = tl.load(x + place.to(tl.int64) * row + k * col, mask=(place > k) & (place < rows), other=0.0)
        v = tl.where(place == k, 1.0, v)
        along = tl.load(taus + k * t_step) * tl.sum(v[:, None] * b, 0)
        b -= v[:, None] * along[None, :]
    tl.store(o + (batch * rows + i) * columns + c, b, mask=inside)
