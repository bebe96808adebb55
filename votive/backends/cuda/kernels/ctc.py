"""The CTC loss and its gradient: one program per sample walks through time, all states of the
target side by side (`cpu/reference/ctc.py` says what a state is). What is left of a step is kept,
for the next one and for the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from ....core import determinism
from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..device import math as m
from ..programs.layouts import contiguous, contiguous_output, next_power_of_two
from ..programs.lines import scratch
from ..programs.program import Program, pointer
from ..programs.types import Run, floats, wide
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View, empty, zero

BLOCK = 512


@triton.jit
def _logaddexp(a, b):
    top = tl.maximum(a, b)
    low = tl.minimum(a, b)
    none = top == -float("inf")
    away = tl.where(none, 0.0, low - top)
    return tl.where(none, top, top + m.f_log1p(m.f_exp(away)))


@triton.jit
def _states(targets, labels, fault, b, s, many, classes, blank, PADDED: tl.constexpr):
    """(the class of each state, whether the blank before it may be skipped, length of the target).

    `many`: how long padded targets are; else they stand one behind the other.
    """
    length = tl.load(labels + b).to(tl.int64)
    if PADDED:
        first = b.to(tl.int64) * many
    else:
        first = tl.zeros((), tl.int64)
        for k in range(b):
            first += tl.load(labels + k).to(tl.int64)
    at = s // 2
    named = (s % 2 == 1) & (at < length)
    state = tl.load(targets + first + at, mask=named, other=0)
    before = tl.load(targets + first + at - 1, mask=named & (at > 0), other=0)
    bad = named & ((state < 0) | (state >= classes))
    tl.store(fault + tl.zeros_like(bad.to(tl.int32)), 1, mask=bad)
    skip = named & (at > 0) & (state != before)
    return tl.where(named & (bad == 0), state, blank), skip, length


@triton.jit
def _forward(
    loss,
    alpha,
    x,
    targets,
    frames,
    labels,
    fault,
    batch,
    steps,
    classes,
    many,
    blank,
    PADDED: tl.constexpr,
    ZERO: tl.constexpr,
    WIDE: tl.constexpr,
    BS: tl.constexpr,
):
    """log p(all ways to be in a state at a time), (batch, time, 2 + states): the two states before
    the first are impossible. Grid: samples.
    """
    b = tl.program_id(0)
    s = tl.arange(0, BS)
    state, skip, length = _states(targets, labels, fault, b, s, many, classes, blank, PADDED)
    time = tl.minimum(tl.load(frames + b).to(tl.int64), steps)
    inf = float("inf")
    row = alpha + b.to(tl.int64) * steps * (BS + 2)
    emit = x + b.to(tl.int64) * classes + state
    a = tl.load(emit).to(WIDE)
    a = tl.where((s == 0) | ((s == 1) & (length > 0)), a, -inf)
    for _ in range(1, time):
        tl.store(row + s, -inf, mask=s < 2)
        tl.store(row + 2 + s, a)
        tl.debug_barrier()
        ways = _logaddexp(a, tl.load(row + 1 + s))
        ways = _logaddexp(ways, tl.where(skip, tl.load(row + s), -inf))
        row += BS + 2
        emit += batch.to(tl.int64) * classes
        a = ways + tl.load(emit).to(WIDE)
    tl.store(row + s, -inf, mask=s < 2)
    tl.store(row + 2 + s, a)
    last = tl.sum(tl.where(s == 2 * length, a, 0.0), 0)
    other = tl.sum(tl.where(s == 2 * length - 1, a, 0.0), 0)
    other = tl.where(length > 0, other, -inf)
    y = -_logaddexp(last, other)
    # Without frames only the empty target has a path, the empty one.
    y = tl.where(time > 0, y, tl.where(length > 0, inf, 0.0))
    if ZERO:
        y = tl.where(y == inf, 0.0, y)
    tl.store(loss + b, y.to(loss.dtype.element_ty))


@triton.jit
def _backward(
    given,
    loss,
    alpha,
    beta,
    x,
    targets,
    frames,
    labels,
    fault,
    batch,
    steps,
    classes,
    many,
    blank,
    PADDED: tl.constexpr,
    WIDE: tl.constexpr,
    BS: tl.constexpr,
):
    """The share of each class at each time in all paths. Beta is log p(all ways from a state at a
    time to the end), two steps of it. Grid: samples.
    """
    b = tl.program_id(0)
    s = tl.arange(0, BS)
    state, _, length = _states(targets, labels, fault, b, s, many, classes, blank, PADDED)
    _, skip, _ = _states(targets, labels, fault, b, s + 2, many, classes, blank, PADDED)
    time = tl.minimum(tl.load(frames + b).to(tl.int64), steps)
    inf = float("inf")
    whole = tl.load(loss + b).to(WIDE)
    ends = (s == 2 * length) | ((s == 2 * length - 1) & (length > 0))
    ways = tl.where(ends, tl.zeros((BS,), WIDE), -inf)
    inside = s <= 2 * length
    for k in range(time):
        t = time - 1 - k
        at = t * batch + b
        e = tl.load(x + at * classes + state).to(WIDE)
        now = ways + e
        before = tl.load(alpha + (b.to(tl.int64) * steps + t) * (BS + 2) + 2 + s)
        paths = before + now
        share = m.f_exp(tl.where(paths == -inf, 0.0, paths - e + whole))
        some = inside & (paths != -inf)
        tl.atomic_add(given + at * classes + state, share, mask=some, sem="relaxed")
        row = beta + (b.to(tl.int64) * 2 + t % 2) * (BS + 2)
        tl.store(row + s, now)
        tl.store(row + BS + s, -inf, mask=s < 2)
        tl.debug_barrier()
        ways = _logaddexp(now, tl.load(row + 1 + s))
        ways = _logaddexp(ways, tl.where(skip, tl.load(row + 2 + s), -inf))


@triton.jit
def _finish(
    o, g, given, loss, x, frames, batch, classes, total, ZERO: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < total
    row = i // classes
    b = row % batch
    p = m.f_exp(tl.load(x + i, mask=there, other=0.0).to(WIDE))
    y = p - tl.load(given + i, mask=there, other=0.0)
    y = y * tl.load(g + b, mask=there, other=0.0).to(WIDE)
    # An impossible target has no gradient to speak of.
    lost = tl.load(loss + b, mask=there, other=0.0) == float("inf")
    y = tl.where(lost, 0.0 if ZERO else float("nan"), y)
    y = tl.where(row // batch >= tl.load(frames + b, mask=there, other=0), 0.0, y)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=there)


class _Paths:
    """The launches that go forward, and the memory they leave."""

    def __init__(self, x: Slot, targets: Slot, frames: Any, labels: Any, blank: int) -> None:
        self.steps, self.batch, self.classes = x.shape
        self.kind = dt.float64 if x.dtype is dt.float64 else dt.float32
        self.many = targets.shape[-1]
        self.states = max(next_power_of_two(2 * self.many + 1), 16)
        self.warps = 4 if self.states <= 1024 else 16
        self.fixed = {"PADDED": targets.ndim == 2, "WIDE": wide(self.kind), "BS": self.states}
        given = [pointer(v.dtype) for v in (x, targets, frames, labels)]
        self.types = [*given, "*i32", "i32", "i32", "i32", "i32", "i32"]
        self.numbers = (self.batch, self.steps, self.classes, self.many, blank)
        text = f"ctc_loss: a target is out of range for {self.classes} classes."
        self.fault = faults.place(IndexError, text)

    def program(self, fn: Callable[..., Any], first: list[str], **flags: Any) -> Program:
        types = [*first, *self.types]
        return Program(fn, types, {**self.fixed, **flags}, warps=self.warps)

    def row(self, x: View) -> View:
        """Memory for the states of all samples and times."""
        return scratch(x.spec, self.batch * self.steps * (self.states + 2), self.kind)


def _fits(x: Spec, targets: Spec, *lengths: Spec) -> bool:
    return floats(x) and targets.dtype is dt.int64 and targets.shape[-1] <= 4096


@cuda("_ctc_loss", accepts=_fits)
def ctc_loss(x: Slot, targets: Slot, frames: Slot, labels: Slot, blank: int, zero_infinity: bool) -> Run:
    p = _Paths(x, targets, frames, labels, blank)
    forward = p.program(_forward, [pointer(x.dtype), pointer(p.kind)], ZERO=zero_infinity)

    def run(outs: list[View], *given: View) -> None:
        x, targets, frames, labels = map(contiguous, given)
        with contiguous_output(outs[0]) as loss:
            ptrs = (loss, p.row(x), x, targets, frames, labels)
            forward((p.batch,), *[v.ptr for v in ptrs], p.fault, *p.numbers)

    return run


@cuda("_ctc_loss_backward", accepts=lambda g, *rest: floats(g) and _fits(*rest))
def ctc_loss_backward(
    g: Slot, x: Slot, targets: Slot, frames: Slot, labels: Slot, blank: int, zero_infinity: bool
) -> Run:
    p = _Paths(x, targets, frames, labels, blank)
    k = pointer(p.kind)
    forward = p.program(_forward, [k, k], ZERO=False)
    backward = p.program(_backward, [k, k, k, k])
    finish = Program(
        _finish,
        [pointer(x.dtype), pointer(g.dtype), k, k, pointer(x.dtype), pointer(frames.dtype), "i64", "i64", "i64"],
        {"ZERO": zero_infinity, "WIDE": wide(p.kind), "BLOCK": BLOCK},
    )
    total = x.numel

    def run(outs: list[View], *values: View) -> None:
        determinism.alert("ctc_loss_backward")
        g, x, targets, frames, labels = map(contiguous, values)
        loss, alpha = scratch(x.spec, p.batch, p.kind), p.row(x)
        beta = scratch(x.spec, p.batch * 2 * (p.states + 2), p.kind)
        given = empty(x.spec.like(x.spec.shape, dtype=p.kind))
        zero(given)
        ptrs = [v.ptr for v in (x, targets, frames, labels)]
        forward((p.batch,), loss.ptr, alpha.ptr, *ptrs, p.fault, *p.numbers)
        first = (given.ptr, loss.ptr, alpha.ptr, beta.ptr)
        backward((p.batch,), *first, *ptrs, p.fault, *p.numbers)
        with contiguous_output(outs[0]) as to:
            grid = (-(-total // BLOCK),)
            more = (to.ptr, g.ptr, given.ptr, loss.ptr, x.ptr, frames.ptr)
            finish(grid, *more, p.batch, p.classes, total)

    return run
