"""Cross entropy and likelihoods, each or reduced: the logits are read once."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.layouts import contiguous
from ...programs.levels import begin_of, lines_of
from ...programs.lines import shared_program
from ...programs.program import TYPE, Program
from ...programs.types import FLOATS, Run, wide
from ...rows import cuda
from ...runtime.faults import faults
from ...runtime.views import View, empty
from .rows import Rows

BYTES = "*i8"
EACH, PARTS, MEAN, SUM = range(4)


@triton.jit
def _forward(
    losses, weights, tops, totals, fault, x, target, weight,
    n, rows, size, middle, blocks, tiles, s0, s1, s2, sx, ignore, smoothing,
    SOFTMAX: tl.constexpr, WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, OUT: tl.constexpr,
    WIDE: tl.constexpr, UNIT_ROW: tl.constexpr, UNIT: tl.constexpr,
    LEVELS: tl.constexpr, SPLIT: tl.constexpr, LANES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # Grid: programs that share the tiles. OUT: what is written, the loss of each row, sums of the program's rows, or
    # the mean or sum of all, whose one program this is.
    lowest: tl.constexpr = -float("inf")
    lane = tl.arange(0, BN)[None, :]
    losses_sum = tl.zeros((BM,), WIDE)
    weights_sum = tl.zeros((BM,), WIDE)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        row, inner, outer, there = lines_of(tile, rows, size, blocks, SPLIT, BM)
        begin = x + begin_of(inner, outer, middle, s0, s1, s2, LEVELS, UNIT_ROW)
        t = tl.load(target + row, mask=there, other=0).to(tl.int64)
        used = there & (t != ignore)
        wrong = used & ((t < 0) | (t >= n))
        tl.store(fault + row * 0, 1, mask=wrong)
        at = tl.where(used & (wrong == 0), t, 0)

        top = tl.full((BM,), lowest, WIDE)
        total = tl.zeros((BM,), WIDE)
        spread = tl.zeros((BM,), WIDE)
        share = tl.zeros((BM,), WIDE)
        tops_each = tl.full((BM, BN), lowest, WIDE)
        totals_each = tl.zeros((BM, BN), WIDE)
        if SOFTMAX or SMOOTH:
            for start in range(0, n, BN):
                i = start + lane
                inside = there[:, None] & (i < n)
                step = i if UNIT else i.to(tl.int64) * sx
                v = tl.load(begin[:, None] + step, mask=inside, other=lowest).to(WIDE)
                if SOFTMAX and LANES:  # what many rows come to is added up at the end
                    higher = tl.maximum(tops_each, v)
                    base = tl.where(higher == lowest, 0.0, higher)
                    totals_each = totals_each * m.swift_exp(tops_each - base) + m.swift_exp(v - base)
                    tops_each = higher
                elif SOFTMAX:
                    higher = tl.maximum(top, tl.max(v, 1))
                    base = tl.where(higher == lowest, 0.0, higher)
                    total = total * m.swift_exp(top - base) + tl.sum(m.swift_exp(v - base[:, None]), 1)
                    top = higher
                if SMOOTH:
                    w = tl.full((BM, BN), 1, WIDE)
                    if WEIGHT:
                        w = w * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
                    spread += tl.sum(tl.where(inside, v * w, 0.0), 1)
                    share += tl.sum(tl.where(inside, w, 0.0), 1)
        if SOFTMAX:
            if LANES:
                top = tl.max(tops_each, 1)
                base = tl.where(top == lowest, 0.0, top)
                total = tl.sum(totals_each * m.swift_exp(tops_each - base[:, None]), 1)
            shift = tl.where(top == lowest, 0.0, top) + m.f_log(total)
            tl.store(tops + row, top, mask=there)
            tl.store(totals + row, total, mask=there)
        else:
            shift = tl.zeros((BM,), WIDE)
        w = tl.full((BM,), 1, WIDE)
        if WEIGHT:
            w = tl.load(weight + at, mask=there, other=0.0).to(WIDE)
        place = at if UNIT else at * sx
        loss = (shift - tl.load(begin + place, mask=there, other=0.0).to(WIDE)) * w
        if SMOOTH:
            s = smoothing.to(WIDE)
            loss = (1 - s) * loss + s / n * (shift * share - spread)
        loss = tl.where(used, loss, 0.0)
        if OUT == 0:
            tl.store(losses + row, loss.to(losses.dtype.element_ty), mask=there)
        else:
            losses_sum += loss
            weights_sum += tl.where(used, w, 0.0)

    if OUT > 0:
        value = tl.sum(losses_sum, 0)
        whole = tl.sum(weights_sum, 0)
        if OUT == 2:
            value = value / whole
        at_end = tl.program_id(0) if OUT == 1 else 0
        tl.store(losses + at_end, value.to(losses.dtype.element_ty))
        tl.store(weights + at_end, whole)


@triton.jit
def _join(loss, total, losses, weights, parts, MEAN: tl.constexpr, BN: tl.constexpr):
    a = tl.zeros((BN,), losses.dtype.element_ty)
    b = tl.zeros((BN,), losses.dtype.element_ty)
    for start in range(0, parts, BN):
        i = start + tl.arange(0, BN)
        a += tl.load(losses + i, mask=i < parts, other=0.0)
        b += tl.load(weights + i, mask=i < parts, other=0.0)
    whole = tl.sum(b, 0)
    value = tl.sum(a, 0)
    if MEAN:
        value = value / whole
    tl.store(loss, value.to(loss.dtype.element_ty))
    tl.store(total, whole)


def takes(*specs: Spec) -> bool:
    return all(s.dtype in FLOATS or s.dtype in (dt.int64, dt.uint8) for s in specs)


def number_of(dtype: dt.dtype) -> str:
    return "fp64" if dtype is dt.float64 else "fp32"


def promised(program: Program, first: int, values: tuple[int, ...]) -> None:
    """Tell which of a program's numbers, from the first on, are multiples of 16."""
    program.divisible = tuple(first + k for k, v in enumerate(values) if v % 16 == 0)


class _Losses:
    """The launch over all rows."""

    def __init__(
        self, op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, softmax: bool
    ) -> None:
        self.r = r = Rows(x.spec, reads=softmax or bool(smoothing))
        self.number, self.weight = number_of(x.dtype), weight is not None
        self.kind = dt.float64 if self.number == "fp64" else dt.float32
        self.types = [
            *["*" + self.number] * 3,
            "*i32",
            "*" + TYPE[x.dtype],
            "*" + TYPE[t.dtype],
            BYTES if weight is None else "*" + TYPE[weight.dtype],
            *["i32"] * 6,
            *["i64"] * 5,
            self.number,
        ]
        unit_row, unit = r.units()
        self.fixed = {
            "SOFTMAX": softmax,
            "WEIGHT": weight is not None,
            "SMOOTH": bool(smoothing),
            "WIDE": wide(x.dtype),
            "UNIT_ROW": unit_row,
            "UNIT": unit,
            **r.constants,
        }
        self.sizes = (*r.numbers, *r.strides())
        self.numbers = (*self.sizes, ignore, float(smoothing))
        text = f"{op}: a target is out of range for {r.n} classes; use 0..{r.n - 1} or ignore_index={ignore}."
        self.fault = faults.place(IndexError, text)

    def program(self, out: int, losses: str) -> Any:
        """launch(losses, weights, tops, totals, x, t, weight)."""
        r, fault, numbers, grid = self.r, self.fault, self.numbers, (self.r.programs,)
        program = Program(_forward, [losses, *self.types], {**self.fixed, "OUT": out}, warps=r.warps)
        promised(program, 8, self.sizes)
        if out == EACH:
            grid = (r.tiles,)

        def launch(losses: int, weights: int, tops: int, totals: int, x: View, t: View, weight: View | None) -> None:
            # Held until the launch: what is let go earlier may be handed out again.
            x, t = r.view(x), contiguous(t)
            ptrs = (losses, weights, tops, totals, fault, x.ptr, t.ptr, 0 if weight is None else weight.ptr)
            program(grid, *ptrs, *numbers)

        return launch


def _losses(op: str, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, softmax: bool) -> Any:
    if not x.numel or x.numel // x.shape[1 if x.ndim > 1 else 0] >= 2**31 - 2**12:
        return None
    if weight is not None and not weight.contiguous:
        return None
    return _Losses(op, x, t, weight, ignore, smoothing, softmax)


def _each(op: str, x: Slot, t: Any, weight: Any, ignore: int, smoothing: float, dtype: dt.dtype, softmax: bool) -> Any:
    found = _losses(op, x, t, weight, ignore, smoothing, softmax)
    if found is None or dtype not in FLOATS:
        return None
    launch = found.program(EACH, "*" + TYPE[dtype])
    spare = Spec(Layout((2, found.r.rows)), found.kind, x.spec.device)
    step = found.r.rows * found.kind.itemsize
    if not softmax:
        return lambda outs, x, t, weight: launch(outs[0].ptr, 0, 0, 0, x, t, weight)

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        s = empty(spare)
        launch(outs[0].ptr, s.ptr, s.ptr, s.ptr + step, x, t, weight)

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
    r, size = found.r, found.kind.itemsize
    step = r.rows * size
    number = "*" + found.number
    result = number if softmax else "*" + TYPE[x.dtype]
    if r.programs == 1:
        one = found.program(MEAN if mean else SUM, result)

        def run_one(outs: list[View], x: View, t: View, weight: View | None) -> None:
            kept = outs[2].ptr if softmax else 0
            one(outs[0].ptr, outs[1].ptr, kept, kept + step if softmax else 0, x, t, weight)

        return run_one
    launch = found.program(PARTS, number)
    join = shared_program(_join, [result, number, number, number, "i32"], {"MEAN": mean, "BN": 2048}, warps=8)
    spare = Spec(Layout((2, r.programs)), found.kind, x.spec.device)
    second = r.programs * size

    def run(outs: list[View], x: View, t: View, weight: View | None) -> None:
        s = empty(spare)
        kept = outs[2].ptr if softmax else 0
        launch(s.ptr, s.ptr + second, kept, kept + step if softmax else 0, x, t, weight)
        join((1,), outs[0].ptr, outs[1].ptr, s.ptr, s.ptr + second, r.programs)

    return run


@cuda("_nll_reduced", accepts=takes)
def nll_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool) -> Run:
    return _reduced("nll_loss", x, t, weight, ignore, 0.0, mean, False)


@cuda("_cross_entropy_reduced", accepts=takes)
def cross_entropy_reduced(x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, mean: bool) -> Run:
    return _reduced("cross_entropy", x, t, weight, ignore, smoothing, mean, True)
