"""How gamma and Dirichlet numbers move with their parameters, by the rule and the quadrature of
`cpu/reference/gamma_sampling.py`: the tail of the density whose integrand has one sign, cut where
the density bends, 32 points a piece. All in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from ....common.quadrature import nodes
from ....common.slot import Slot
from ...device import math as m
from ...programs.layouts import contiguous_output, expanded
from ...programs.program import Program, pointer
from ...programs.types import Run, floats
from ...rows import cuda
from ...runtime.tables import Table
from ...runtime.views import View
from ..random.draws import EXACT

BLOCK = 16  # elements of a program; a tile has a column for each point
_DROP = tl.constexpr(40.0)  # where the integrand has fallen by exp(-40), the rest is nothing
POINTS = 32


@triton.jit
def _log_less_digamma(a):
    """log a - digamma(a), without the cancellation at large a."""
    v = m.f_div(tl.zeros_like(a) + 1, a * a)
    large = m.f_div(tl.zeros_like(a) + 0.5, a) + v * (1 / 12 - v * (1 / 120 - v * (1 / 252)))
    return tl.where(a < 100, m.f_log(a) - m.f_digamma(a), large)


@triton.jit
def _loss(w, p, q):
    """log(q + p exp(w)), by which the logarithm of the other chance has sunk."""
    near = m.f_log1p(p * m.f_expm1(tl.minimum(w, 30.0)))
    return tl.where(w < 30, near, w + m.f_log(p + q * m.f_exp(-w)))


@triton.jit
def _gain(w, p, q):
    return tl.where(p > 0.5, -m.f_log1p(q * m.f_expm1(-w)), w - _loss(w, p, q))


@triton.jit
def _fall(w, side, x, alpha, beta, p, q, BETA: tl.constexpr):
    """By how much the logarithm of the weight has sunk w away from the sample."""
    if BETA:
        gaining, losing = tl.where(side > 0, alpha, beta), tl.where(side > 0, beta, alpha)
        return losing * _loss(w, p, q) - gaining * _gain(w, p, q)
    else:
        return x * m.f_expm1(side * w) - alpha * (side * w)


@triton.jit
def _steepness(w, side, u, x, alpha, beta, BETA: tl.constexpr):
    if BETA:
        t = m.f_div(tl.zeros_like(w) + 1, 1 + m.f_exp(-(u + side * w)))
        return side * (beta * t - alpha * (1 - t))
    else:
        return side * (x * m.f_exp(side * w) - alpha)


@triton.jit
def _slope(x, alpha, beta, nodes, BETA: tl.constexpr):
    """x times the integral of |ahead| + gain over the tail, over the density."""
    zero = tl.zeros_like(x)
    p = zero
    q = zero
    if BETA:
        ahead = m.f_log(x) - (m.f_digamma(alpha) - m.f_digamma(alpha + beta))
        side = tl.where(ahead >= 0, 1.0, -1.0)
        u = m.f_log(x) - m.f_log1p(-x)
        p, q = tl.where(ahead >= 0, x, 1 - x), tl.where(ahead >= 0, 1 - x, x)
        losing = tl.where(ahead >= 0, beta, alpha)
        weight = alpha * m.f_log(x) + beta * m.f_log1p(-x)
        end = m.f_div(-weight + _DROP, losing) - side * u
    else:
        close = tl.abs(x - alpha) < 0.5 * alpha
        relative = m.f_log1p(m.f_div(tl.where(close, x - alpha, zero), alpha))
        relative = tl.where(close, relative, m.f_log(x) - m.f_log(alpha))
        ahead = relative + _log_less_digamma(alpha)
        side = tl.where(ahead < 0, -1.0, 1.0)
        u = m.f_log(x)
        up = m.f_log1p(m.f_div(8 * alpha + _DROP, x)) + 2
        end = tl.where(side < 0, m.f_div(x + _DROP, alpha), up)
    moving = zero == 0
    while tl.max(moving.to(tl.int32), 0) > 0:  # comes down monotonically, a convex function
        over = _fall(end, side, x, alpha, beta, p, q, BETA) - _DROP
        step = m.f_div(over, _steepness(end, side, u, x, alpha, beta, BETA))
        end = end - tl.where(moving, step, 0.0)
        moving = moving & (tl.abs(step) > 1e-3 * end)

    point, weight = (tl.load(nodes + tl.arange(0, 32))[None, :], tl.load(nodes + 32 + tl.arange(0, 32)))
    total = zero
    before = zero
    k = tl.zeros((), tl.int32)
    for _ in range(8):
        # The cuts -40, -20, -8, 0, 8, 20, 40 in the direction that is gone, then the end.
        j = tl.where(side > 0, k, 6 - k)
        far = tl.abs(j - 3)
        cut = tl.where(far == 0, 0.0, tl.where(far == 1, 8.0, tl.where(far == 2, 20.0, 40.0)))
        cut = tl.where(j < 3, -cut, cut)
        after = tl.minimum(tl.maximum(side * (cut - u), 0.0), end)
        after = tl.where(k == 7, end, after)
        width = after - before
        w = before[:, None] + width[:, None] * point
        row = w * 0
        s, P, Q = side[:, None] + row, p[:, None] + row, q[:, None] + row
        fall = _fall(w, s, x[:, None] + row, alpha[:, None] + row, beta[:, None] + row, P, Q, BETA)
        gone = w
        if BETA:
            gone = tl.where(s > 0, _gain(w, P, Q), _loss(w, P, Q))
        f = (tl.abs(ahead)[:, None] + gone) * m.f_exp(-fall) * weight[None, :]
        total += tl.where(width > 0, width * tl.sum(f, 1), 0.0)
        before = after
        k += 1
    return x * total


@triton.jit
def _gamma_grad(o, shapes, samples, nodes, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    alpha = tl.load(shapes + i, mask=there, other=1.0).to(tl.float64)
    x = tl.load(samples + i, mask=there, other=1.0).to(tl.float64)
    good = (alpha > 0) & (x > 0) & (alpha * x < float("inf"))
    out = tl.where((alpha > 0) & (x == 0), 0.0, float("nan"))
    a, s = tl.where(good, alpha, 1.0), tl.where(good, x, 1.0)
    y = tl.where(good, _slope(s, a, a, nodes, False), out)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=there)


@triton.jit
def _beta_grad(o, samples, shapes, totals, nodes, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    x = tl.load(samples + i, mask=there, other=0.5).to(tl.float64)
    alpha = tl.load(shapes + i, mask=there, other=1.0).to(tl.float64)
    total = tl.load(totals + i, mask=there, other=2.0).to(tl.float64)
    good = (x > 0) & (x < 1) & (alpha > 0) & (total > alpha) & (total < float("inf"))
    # With one coordinate there is nothing to move against.
    still = (x == 0) | ((x > 0) & (total == alpha))
    out = tl.where(still, 0.0, float("nan"))
    a, s = tl.where(good, alpha, 1.0), tl.where(good, x, 0.5)
    b = tl.where(good, total - alpha, 1.0)
    y = tl.where(good, _slope(s, a, b, nodes, True), out)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=there)


@cache
def _table(device: int) -> Any:
    """Places and weights of the quadrature on a device."""
    points = np.concatenate(nodes())
    assert len(points) == 2 * POINTS
    return Table(points, device)


def _graded(fn: Callable[..., Any], out: Slot, given: tuple[Any, ...]) -> Any:
    n = out.numel
    types = [pointer(out.dtype), *(pointer(g.dtype) for g in given), "*fp64", "i64"]
    program = Program(fn, types, {"BLOCK": BLOCK}, warps=8, **EXACT)
    grid = (-(-n // BLOCK),)
    table = _table(out.spec.device.index or 0).ptr

    def run(outs: list[View], *given: View) -> None:
        if not n:
            return
        shape = outs[0].spec.shape
        views = [expanded(v, shape) for v in given]
        with contiguous_output(outs[0]) as to:
            program(grid, to.ptr, *[v.ptr for v in views], table, n)

    return run


@cuda("_standard_gamma_grad", accepts=floats)
def standard_gamma_grad(alpha: Slot, x: Slot) -> Run:
    return _graded(_gamma_grad, x, (alpha, x))


@cuda("_dirichlet_grad", accepts=floats)
def dirichlet_grad(x: Slot, alpha: Slot, total: Slot) -> Run:
    return _graded(_beta_grad, x, (x, alpha, total))
