"""Gamma and Dirichlet numbers by the rule of `common/sampling_rejection.py`."""

from __future__ import annotations

import ml_dtypes
import triton
import triton.language as tl

from .....core import dtype as dt
from ....common.slot import Slot
from ...device import math as m
from ...programs.generator_state import philox_state
from ...programs.layouts import contiguous_output, next_power_of_two
from ...programs.lines import scratch
from ...programs.program import Program, pointer
from ...programs.types import Run, floats
from ...rows import cuda
from ...runtime.views import View
from ..random.draws import EXACT, _open
from ..random.rejection import halves, rejecting, some


@triton.jit
def _log_gamma_number(key, at, alpha, live):
    """(a gamma number of shape alpha, or alpha + 1 below 1; the number that carries it down)."""
    one = tl.zeros_like(alpha) + 1
    d = tl.where(alpha < 1, alpha + 1, alpha) - 1 / 3
    c = m.f_div(one, m.f_sqrt(9 * d))
    value = one
    attempt = tl.zeros((), tl.int64)
    carry = _open(halves(key, at + 1, attempt)[1], True)
    while some(live):
        first, second = halves(key, at, attempt)
        radius = m.f_sqrt(-2 * m.f_log(_open(first, True)))
        x = radius * m.f_cos(6.283185307179586 * _open(second, True))
        u = _open(halves(key, at + 1, attempt)[0], True)
        s = c * x
        # v = (1 + s)**3: its distance from one and its logarithm are each taken from s.
        excess = s * (3 + s * (3 + s))
        gain = d * (3 * m.f_log1p(tl.maximum(s, -1.0)) - excess)
        good = live & (s > -1) & (m.f_log(u) < 0.5 * x * x + gain)
        value = tl.where(good, d * (1 + excess), value)
        live = live & (good == 0)
        attempt += 1
    return value, carry


@triton.jit
def _gamma(o, shapes, moved, key, counter, n, least, LOGS: tl.constexpr, BLOCK: tl.constexpr):
    """Gamma numbers, at least `least`; or their logarithms, which small shapes do not exhaust."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    alpha = tl.load(shapes + i, mask=there, other=1.0).to(tl.float64)
    regular = there & (alpha > 0) & (alpha < float("inf"))
    safe = tl.where(regular, alpha, 1.0)
    key, counter = philox_state(key, counter, moved)
    value, carry = _log_gamma_number(key, 2 * i + counter, safe, regular)
    below = m.f_div(m.f_log(carry), safe)
    odd = tl.where(alpha >= 0, alpha, float("nan"))
    if LOGS:
        logs = m.f_log(tl.maximum(value, least))
        logs = tl.where(safe < 1, logs + below, logs)
        y = tl.where(regular, logs, m.f_log(odd))
    else:
        carried = m.f_exp(m.f_log(value) + below)
        y = tl.where(regular, tl.where(safe < 1, carried, value), odd)
        y = tl.where(y < least, least, y)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=there)


@triton.jit
def _shares(o, logs, n, low, high, BN: tl.constexpr):
    """Exponentials of a line over their sum. Grid: lines."""
    row = tl.program_id(0).to(tl.int64) * n
    lane = tl.arange(0, BN)
    top = tl.full((BN,), float("-inf"), tl.float64)
    for start in range(0, n, BN):
        i = start + lane
        v = tl.load(logs + row + i, mask=i < n, other=float("-inf"))
        top = m.f_maximum(top, v)
    most = tl.max(top, 0)
    most = tl.where(tl.max((top != top).to(tl.int32), 0) > 0, float("nan"), most)
    total = tl.zeros((BN,), tl.float64)
    for start in range(0, n, BN):
        i = start + lane
        v = tl.load(logs + row + i, mask=i < n, other=float("-inf"))
        total += tl.where(i < n, m.f_exp(v - most), 0.0)
    whole = tl.sum(total, 0)
    for start in range(0, n, BN):
        i = start + lane
        v = tl.load(logs + row + i, mask=i < n, other=float("-inf"))
        y = m.f_div(m.f_exp(v - most), whole + v * 0)
        y = tl.where(y < low, low, tl.where(y > high, high, y))
        tl.store(o + row + i, y.to(o.dtype.element_ty), mask=i < n)


@cuda("_gamma", accepts=floats)
def gamma(alpha: Slot, key: Slot, counter: Slot) -> Run:
    launch = rejecting(_gamma, alpha, [alpha], LOGS=False)
    least = float(ml_dtypes.finfo(alpha.dtype.np).smallest_normal)
    return lambda outs, alpha, key, counter: launch(outs[0], [alpha], key, counter, least)


@cuda("_dirichlet", accepts=floats)
def dirichlet(alpha: Slot, key: Slot, counter: Slot) -> Run:
    n = alpha.shape[-1]
    rows = alpha.numel // n if n else 0
    row = alpha.spec.like(alpha.shape, dtype=dt.float64)
    launch = rejecting(_gamma, Slot(0, row), [alpha], LOGS=True)
    types = [pointer(alpha.dtype), "*fp64", "i64", "fp64", "fp64"]
    shares = Program(_shares, types, {"BN": min(max(next_power_of_two(n), 16), 1024)}, **EXACT)
    kind = ml_dtypes.finfo(alpha.dtype.np)
    low, high = float(kind.smallest_normal), 1 - float(kind.epsneg)
    least = float(ml_dtypes.finfo(dt.float64.np).smallest_normal)

    def run(outs: list[View], alpha: View, key: int, counter: int) -> None:
        if not rows:
            return
        logs = scratch(row, row.numel, dt.float64)
        logs = View(logs.ptr, row, logs.storage)
        launch(logs, [alpha], key, counter, least)
        with contiguous_output(outs[0]) as to:
            shares((rows,), to.ptr, logs.ptr, n, low, high)

    return run
