"""Cross entropy and likelihoods, each or reduced: the logits are read once."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.layouts import contiguous, last, next_power_of_two, row_stride, sizes
from ...programs.program import TYPE, Program
from ...programs.types import FLOATS, Run, wide
from ...rows import cuda
from ...runtime.faults import faults
from ...runtime.views import View, empty

BYTES = "*i8"
LONGEST = 8192  # logits that a program holds at once


@triton.jit
def _forward(
    losses,
    weights,
    tops,
    totals,
    fault,
    x,
    target,
    weight,
    n,
    sx,
    ignore,
    smoothing,
    SOFTMAX: tl.constexpr,
    WEIGHT: tl.constexpr,
    SMOOTH: tl.constexpr,
    WIDE: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    t = tl.load(target + row).to(tl.int64)
    used = t != ignore
    wrong = used & ((t < 0) | (t >= n))
    tl.store(fault, 1, mask=wrong)
    at = tl.where(used & (wrong == 0), t, 0)

    top = tl.full((), -float("inf"), WIDE)
    total = tl.zeros((), WIDE)
    spread = tl.zeros((), WIDE)
    share = tl.zeros((), WIDE)
    if SOFTMAX or SMOOTH:
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)
            v = tl.load(x + row * sx + i, mask=i < n, other=-float("inf")).to(WIDE)
            if SOFTMAX:
                higher = tl.maximum(top, tl.max(v, 0))
                base = tl.where(higher == -float("inf"), 0.0, higher)
                total = total * m.swift_exp(top - base) + tl.sum(m.swift_exp(v - base), 0)
                top = higher
            if SMOOTH:
                w = tl.full((BN,), 1, WIDE)
                if WEIGHT:
                    w = tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
                spread += tl.sum(tl.where(i < n, v * w, 0.0), 0)
                share += tl.sum(tl.where(i < n, w, 0.0), 0)
    if SOFTMAX:
        shift = tl.where(top == -float("inf"), 0.0, top) + m.f_log(total)
        tl.store(tops + row, top)
        tl.store(totals + row, total)
    else:
        shift = tl.zeros((), WIDE)
    w = tl.full((), 1, WIDE)
    if WEIGHT:
        w = tl.load(weight + at).to(WIDE)
    loss = (shift - tl.load(x + row * sx + at).to(WIDE)) * w
    if SMOOTH:
        s = smoothing.to(WIDE)
        loss = (1 - s) * loss + s / n * (shift * share - spread)

    tl.store(losses + row, tl.where(used, loss, 0.0).to(losses.dtype.element_ty))
    tl.store(weights + row, tl.where(used, w, 0.0))


@triton.jit
def _join(loss, total, losses, weights, rows, MEAN: tl.constexpr, BN: tl.constexpr):
    a = tl.zeros((BN,), losses.dtype.element_ty)
    b = tl.zeros((BN,), losses.dtype.element_ty)
    for start in range(0, rows, BN):
        i = start + tl.arange(0, BN)
        a += tl.load(losses + i, mask=i < rows, other=0.0)
        b += tl.load(weights + i, mask=i < rows, other=0.0)
    whole = tl.sum(b, 0)
    value = tl.sum(a, 0)
    if MEAN:
        value = value / whole
    tl.store(loss, value.to(loss.dtype.element_ty))
    tl.store(total, whole)


def takes(*specs: Spec) -> bool:
    return all(s.dtype in FLOATS or s.dtype in (dt.int64, dt.uint8) for s in specs)


def by_class(spec: Spec) -> Spec:
    """Classes last, targets in front."""
    return last(spec, 1) if spec.ndim > 1 else spec


class Rows:
    """Logits as rows of classes."""

    def __init__(self, spec: Spec) -> None:
        self.permuted = by_class(spec)
        self.rows, self.n = sizes(self.permuted)
        stride = row_stride(self.permuted)
        self.direct = stride is not None
        self.stride = self.n if stride is None else stride
        self.block = min(next_power_of_two(max(self.n, 16)), LONGEST)
        self.warps = 4 if self.block <= 2048 else 8 if self.block <= 4096 else 16

    def view(self, v: View) -> View:
        v = View(v.ptr, self.permuted, v.storage)
        return v if self.direct else contiguous(v)


def number_of(dtype: dt.dtype) -> str:
    return "fp64" if dtype is dt.float64 else "fp32"


def _losses(op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, softmax: bool) -> Any:
    """launch(losses, weights, tops, totals, x, t, weight) or None."""
    if not x.numel or (weight is not None and not weight.contiguous):
        return None
    r = Rows(x.spec)
    number = number_of(x.dtype)
    types = [
        "LOSSES",
        "*" + number,
        "*" + number,
        "*" + number,
        "*i32",
        "*" + TYPE[x.dtype],
        "*" + TYPE[t.dtype],
        BYTES if weight is None else "*" + TYPE[weight.dtype],
        "i32",
        "i64",
        "i64",
        number,
    ]
    fixed = {
        "SOFTMAX": softmax,
        "WEIGHT": weight is not None,
        "SMOOTH": bool(smoothing),
        "WIDE": wide(x.dtype),
        "BN": r.block,
    }
    fault = faults.place(
        IndexError, f"{op}: a target is out of range for {r.n} classes; use 0..{r.n - 1} or ignore_index={ignore}."
    )

    def make(losses: str) -> Any:
        program = Program(_forward, [losses, *types[1:]], fixed, warps=r.warps)
        program.divisible = tuple(k for k, v in ((8, r.n), (9, r.stride)) if v % 16 == 0)

        def launch(losses: int, weights: int, tops: int, totals: int, x: View, t: View, weight: View | None) -> None:
            # Held until the launch: what is let go earlier may be handed out again.
            x, t = r.view(x), contiguous(t)
            program(
                (r.rows,),
                losses,
                weights,
                tops,
                totals,
                fault,
                x.ptr,
                t.ptr,
                0 if weight is None else weight.ptr,
                r.n,
                r.stride,
                ignore,
                float(smoothing),
            )

        return launch

    return r, number, make


def _each(op: str, x: Slot, t: Any, weight: Any, ignore: int, smoothing: float, dtype: dt.dtype, softmax: bool) -> Any:
    found = _losses(op, x, t, weight, ignore, smoothing, softmax)
    if found is None or dtype not in FLOATS:
        return None
    r, number, make = found
    launch = make("*" + TYPE[dtype])
    spare = Spec(Layout((3, r.rows)), dt.float64 if number == "fp64" else dt.float32, x.spec.device)
    step = r.rows * (8 if number == "fp64" else 4)

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        s = empty(spare)
        launch(outs[0].ptr, s.ptr, s.ptr + step, s.ptr + 2 * step, x, t, weight)

    return run


@cuda("_nll", accepts=takes)
def nll(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Run:
    return _each("nll_loss", x, t, weight, ignore, smoothing, dtype, False)


@cuda("_cross_entropy", accepts=takes)
def cross_entropy(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, dtype: dt.dtype) -> Run:
    return _each("cross_entropy", x, t, weight, ignore, smoothing, dtype, True)


def _reduced(op: str, x: Slot, t: Any, weight: Any, ignore: int, smoothing: float, mean: bool, softmax: bool) -> Any:
    found = _losses(op, x, t, weight, ignore, smoothing, softmax)
    if found is None:
        return None
    r, number, make = found
    launch = make("*" + number)
    join = Program(
        _join,
        ["*" + (number if softmax else TYPE[x.dtype]), *["*" + number] * 3, "i32"],
        {"MEAN": mean, "BN": 2048},
        warps=8,
    )
    kind = dt.float64 if number == "fp64" else dt.float32
    spare = Spec(Layout((4, r.rows)), kind, x.spec.device)
    step = r.rows * kind.itemsize

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        s = empty(spare)
        kept = outs[2].ptr if softmax else s.ptr + 2 * step
        launch(s.ptr, s.ptr + step, kept, kept + step, x, t, weight)
        join((1,), outs[0].ptr, outs[1].ptr, s.ptr, s.ptr + step, r.rows)

    return run


@cuda("_nll_reduced", accepts=takes)
def nll_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool) -> Run:
    return _reduced("nll_loss", x, t, weight, ignore, 0.0, mean, False)


@cuda("_cross_entropy_reduced", accepts=takes)
def cross_entropy_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, mean: bool) -> Run:
    return _reduced("cross_entropy", x, t, weight, ignore, smoothing, mean, True)
