"""Poisson, binomial and gamma numbers by the rule of `common/sampling_rejection.py`: each
element has counters of its own, and the number of its attempt in their high words. All is computed
in float64. Sources of methods and constants are named there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from ....common.slot import Slot
from ...device import math as m
from ...programs.checks import required
from ...programs.generator_state import philox_state, shift
from ...programs.layouts import contiguous_output, expanded
from ...programs.program import Program, pointer
from ...programs.types import Run, floats
from ...rows import cuda
from ...runtime.views import View
from .draws import EXACT, _centred, _open, _word

BLOCK = 256
_SEARCHED = tl.constexpr(10.0)  # below this mean by search


@triton.jit
def halves(key, at, attempt):
    """The two 64-bit halves of each counter."""
    low = (at & 0xFFFFFFFF).to(tl.uint32)
    high = ((at >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero + attempt.to(tl.uint32), zero)
    first = a.to(tl.uint64) | (b.to(tl.uint64) << 32)
    return first, c.to(tl.uint64) | (d.to(tl.uint64) << 32)


@triton.jit
def _stirling_error(k):
    """log k! less Stirling's formula: his series from 16 on."""
    one = tl.zeros_like(k) + 1
    inverse = m.f_div(one, tl.maximum(k, 1.0))
    square = inverse * inverse
    series = 1 / 1260 - square * (1 / 1680)
    series = inverse * (1 / 12 - square * (1 / 360 - square * series))
    few = tl.minimum(tl.maximum(k, 1.0), 16.0)
    exact = m.f_lgamma(few + 1) - (few + 0.5) * m.f_log(few) + few - 0.9189385332046727
    return tl.where(k < 16, exact, series)


@triton.jit
def _log_poisson(k, mean):
    """log(mean**k exp(-mean) / k!), by the saddle point: all terms stay small."""
    d = m.f_div(k - mean, mean)
    deviance = mean * ((1 + d) * m.f_log1p(tl.maximum(d, -0.9999999999999999)) - d)
    body = -_stirling_error(k) - deviance
    body = body - 0.5 * m.f_log(6.283185307179586 * tl.maximum(k, 1.0))
    return tl.where(k == 0, -mean, body)


@triton.jit
def some(mask):
    return tl.max(mask.to(tl.int32), 0) > 0


@triton.jit
def _proposal(key, at, attempt):
    """(a place under the hat, a height, the distance to the nearer end) of transformed rejection."""
    first, second = halves(key, at, attempt)
    c, v = _centred(first, True), _open(second, True)
    return c, v, 0.5 - tl.abs(c)


@triton.jit
def _poisson_value(key, at, lam, there):
    small = there & (lam < _SEARCHED)
    large = there & (lam >= _SEARCHED) & (lam < float("inf"))
    none = tl.zeros((), tl.int64)
    # Search: the first k at which the cumulative probability reaches u.
    u = _open(halves(key, at, none)[0], True)
    term = m.f_exp(-lam)
    total = term
    found = lam * 0
    step = tl.full((), 1.0, tl.float64)
    beyond = small
    while some(beyond):
        term = m.f_div(term * lam, step + lam * 0)
        after = total + term
        beyond = beyond & (u > total) & (after > total)
        found = found + tl.where(beyond, 1.0, 0.0)
        total = tl.where(beyond, after, total)
        step += 1
    # Rejection (PTRS).
    b = 0.931 + 2.53 * m.f_sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + m.f_div(1.1328 + lam * 0, b - 3.4)
    squeeze = 0.9277 - m.f_div(3.6224 + lam * 0, b - 2)
    value = tl.where(small, found, float("inf"))
    live = large
    attempt = tl.zeros((), tl.int64)
    while some(live):
        c, v, us = _proposal(key, at, attempt)
        k = m.f_floor((m.f_div(2 * a, us) + b) * c + lam + 0.43)
        inside = (us >= 0.07) & (v <= squeeze)
        possible = (k >= 0) & (k < float("inf")) & ((us >= 0.013) | (v <= us))
        bound = m.f_log(m.f_div(v * inverse_alpha, m.f_div(a, us * us) + b))
        good = live & (inside | (possible & (bound <= _log_poisson(k, lam))))
        value = tl.where(good, k, value)
        live = live & (good == 0)
        attempt += 1
    return value


@triton.jit
def _poisson(o, rate, moved, key, counter, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    lam = tl.load(rate + i, mask=there, other=0.0).to(tl.float64)
    key, counter = philox_state(key, counter, moved)
    y = _poisson_value(key, i + counter, lam, there)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=there)


@triton.jit
def _binomial(o, count, prob, moved, key, counter, elements, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < elements
    key, counter = philox_state(key, counter, moved)
    at = i + counter
    n = tl.load(count + i, mask=there, other=0.0).to(tl.float64)
    n = tl.where(n != n, n, tl.maximum(m.f_floor(n), 0.0))
    p = tl.load(prob + i, mask=there, other=0.0).to(tl.float64)
    p = tl.where(p != p, p, tl.minimum(tl.maximum(p, 0.0), 1.0))
    # The rarer outcome is drawn: both methods want p <= 1/2.
    flip = p > 0.5
    p = tl.where(flip, 1 - p, p)
    mean = n * p
    value = tl.where(p == 0, 0.0, tl.where(mean != mean, mean, float("inf")))
    known = there & (tl.abs(mean) < float("inf")) & (p > 0)
    small, large = known & (mean < _SEARCHED), known & (mean >= _SEARCHED)

    u = _open(halves(key, at, tl.zeros((), tl.int64))[0], True)
    odds = m.f_div(p, 1 - p)
    term = m.f_exp(n * m.f_log1p(-p))
    total = term
    found = mean * 0
    step = tl.full((), 0.0, tl.float64)
    beyond = small
    while some(beyond):
        term = term * (m.f_div(tl.maximum(n - step, 0.0), step + 1 + n * 0) * odds)
        after = total + term
        beyond = beyond & (u > total) & (after > total)
        found = found + tl.where(beyond, 1.0, 0.0)
        total = tl.where(beyond, after, total)
        step += 1
    value = tl.where(small, found, value)

    # Rejection (BTRS). A binomial probability is that of two Poisson numbers over that of their
    # sum, and the sum cancels in a ratio.
    width = m.f_sqrt(mean * (1 - p))
    b = 1.15 + 2.53 * width
    a = -0.0873 + 0.0248 * b + 0.01 * p
    squeeze = 0.92 - m.f_div(4.2 + b * 0, b)
    alpha = (2.83 + m.f_div(5.1 + b * 0, b)) * width
    failures = n * (1 - p)
    top = m.f_floor((n + 1) * p)
    peak = _log_poisson(top, mean) + _log_poisson(n - top, failures)
    live = large
    attempt = tl.zeros((), tl.int64)
    while some(live):
        c, v, us = _proposal(key, at, attempt)
        k = m.f_floor((m.f_div(2 * a, us) + b) * c + mean + 0.5)
        possible = (k >= 0) & (k <= n)
        inside = possible & (us >= 0.07) & (v <= squeeze)
        bound = m.f_log(m.f_div(v * alpha, m.f_div(a, us * us) + b))
        weight = _log_poisson(k, mean) + _log_poisson(n - k, failures)
        good = live & (inside | (possible & (bound <= weight - peak)))
        value = tl.where(good, k, value)
        live = live & (good == 0)
        attempt += 1
    value = tl.where(flip & (tl.abs(value) < float("inf")), n - value, value)
    tl.store(o + i, value.to(o.dtype.element_ty), mask=there)


def rejecting(fn: Callable[..., Any], x: Slot, given: list[Any], **constants: Any) -> Any:
    """launch(to, parameters, key, counter, more...) for all elements of x."""
    n = x.numel
    pointers = [pointer(x.dtype), *(pointer(g.dtype) for g in given), "*i64"]
    more = ["fp64"] if "LOGS" in constants else []
    program = Program(fn, [*pointers, "i64", "i64", "i64", *more], {**constants, "BLOCK": BLOCK}, **EXACT)
    grid = (-(-n // BLOCK),)

    def launch(to: View, parameters: list[View], key: int, counter: int, *more: float) -> None:
        if not n:
            return
        with contiguous_output(to) as rows:
            ptrs = [expanded(p, to.spec.shape) for p in parameters]
            numbers = (shift(), _word(key), _word(counter), n, *more)
            program(grid, rows.ptr, *[p.ptr for p in ptrs], *numbers)

    return launch


@cuda("_poisson", accepts=floats)
def poisson(x: Slot, key: Slot, counter: Slot, rate: Slot) -> Run:
    launch = rejecting(_poisson, x, [rate])
    text = "invalid Poisson rate, expected rate to be non-negative"
    check = required(rate, "(v >= 0) == 0", text)

    def run(outs: list[View], x: View, key: int, counter: int, rate: View) -> None:
        check(rate)
        launch(outs[0], [rate], key, counter)

    return run


@cuda("_binomial", accepts=floats)
def binomial(x: Slot, key: Slot, counter: Slot, count: Slot, prob: Slot) -> Run:
    launch = rejecting(_binomial, x, [count, prob])
    return lambda outs, x, key, counter, *given: launch(outs[0], list(given), key, counter)
