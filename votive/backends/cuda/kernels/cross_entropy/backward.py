"""Gradients of cross entropy and likelihoods: the logits are read once and their gradient written."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.copy import copy_view
from ...programs.layouts import contiguous
from ...programs.levels import begin_of, lines_of
from ...programs.program import TYPE, Program
from ...programs.types import FLOATS, Run, wide
from ...rows import cuda
from ...runtime.views import View
from .forward import BYTES, number_of, promised, takes
from .rows import Rows, by_class


@triton.jit
def _backward(
    o, g, x, target, weight, total, tops, totals,
    n, rows, size, middle, blocks, tiles, s0, s1, s2, sx, o0, o1, o2, so, ignore, smoothing,
    SOFTMAX: tl.constexpr, EACH: tl.constexpr, MEAN: tl.constexpr, STATISTICS: tl.constexpr,
    WEIGHT: tl.constexpr, SMOOTH: tl.constexpr, WIDE: tl.constexpr,
    UNIT_ROW: tl.constexpr, UNIT: tl.constexpr, OUT_UNIT_ROW: tl.constexpr, OUT_UNIT: tl.constexpr,
    LEVELS: tl.constexpr, SPLIT: tl.constexpr, LANES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """`g (Q softmax(x) - q)`, or `-g q` without softmax. Grid: tiles of rows."""
    lowest: tl.constexpr = -float("inf")
    lane = tl.arange(0, BN)[None, :]
    row, inner, outer, there = lines_of(tl.program_id(0), rows, size, blocks, SPLIT, BM)
    begin = x + begin_of(inner, outer, middle, s0, s1, s2, LEVELS, UNIT_ROW)
    to = o + begin_of(inner, outer, middle, o0, o1, o2, LEVELS, OUT_UNIT_ROW)
    t = tl.load(target + row, mask=there, other=0).to(tl.int64)
    used = there & (t != ignore) & (t >= 0) & (t < n)
    at = tl.where(used, t, 0)
    if EACH:
        a = tl.load(g + row, mask=there, other=0.0).to(WIDE)
    else:
        a = tl.load(g).to(WIDE) + tl.zeros((BM,), WIDE)
    if MEAN:
        a = a / tl.load(total).to(WIDE)
    a = tl.where(used, a, 0.0)
    s = smoothing.to(WIDE)
    w = tl.full((BM,), 1, WIDE)
    if WEIGHT:
        w = tl.load(weight + at, mask=there, other=0.0).to(WIDE)
    own = a * w
    if SMOOTH:
        own = own * (1 - s)
    share = tl.zeros((BM,), WIDE)
    top = tl.full((BM,), lowest, WIDE)
    sums = tl.zeros((BM,), WIDE)
    if STATISTICS:
        top = tl.load(tops + row, mask=there, other=0.0)
        sums = tl.load(totals + row, mask=there, other=1.0)
    if SMOOTH or (SOFTMAX and STATISTICS == 0):
        for start in range(0, n, BN):
            i = start + lane
            inside = there[:, None] & (i < n)
            if SMOOTH:
                c = tl.full((BM, BN), 1, WIDE)
                if WEIGHT:
                    c = c * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
                share += tl.sum(tl.where(inside, c, 0.0), 1)
            if SOFTMAX and STATISTICS == 0:
                step = i if UNIT else i.to(tl.int64) * sx
                v = tl.load(begin[:, None] + step, mask=inside, other=lowest).to(WIDE)
                higher = tl.maximum(top, tl.max(v, 1))
                base = tl.where(higher == lowest, 0.0, higher)
                sums = sums * m.swift_exp(top - base) + tl.sum(m.swift_exp(v - base[:, None]), 1)
                top = higher
    q = own
    if SMOOTH:
        q = q + a * (s / n) * share
    scale = q / tl.where(sums == 0, 1.0, sums)
    base = tl.where(top == lowest, 0.0, top)
    for start in range(0, n, BN):
        i = start + lane
        inside = there[:, None] & (i < n)
        y = tl.zeros((BM, BN), WIDE)
        if SOFTMAX:
            step = i if UNIT else i.to(tl.int64) * sx
            v = tl.load(begin[:, None] + step, mask=inside, other=lowest).to(WIDE)
            y = m.swift_exp(v - base[:, None]) * scale[:, None]
        if SMOOTH:
            c = tl.full((BM, BN), 1, WIDE)
            if WEIGHT:
                c = c * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
            y = y - (a * (s / n))[:, None] * c
        y = y - tl.where(i == at[:, None], own[:, None], 0.0)
        step = i if OUT_UNIT else i.to(tl.int64) * so
        tl.store(to[:, None] + step, y.to(o.dtype.element_ty), mask=inside)


def _gradient(
    x: Spec,
    g: Slot,
    t: Slot,
    weight: Slot | None,
    ignore: int,
    smoothing: float,
    *,
    softmax: bool,
    each: bool,
    mean: bool = False,
    statistics: bool = False,
) -> Any:
    """launch(out, g, x, t, weight, total, statistics) or None."""
    if 0 in x.shape or (weight is not None and not weight.contiguous):
        return None
    target = x.dense_like()
    r = Rows(x if softmax else target, target)
    number = number_of(x.dtype)
    types = [
        *["*" + TYPE[d] for d in (x.dtype, g.dtype, x.dtype, t.dtype)],
        BYTES if weight is None else "*" + TYPE[weight.dtype],
        *["*" + number] * 3,
        *["i32"] * 6,
        *["i64"] * 9,
        number,
    ]
    (unit_row, unit), (out_unit_row, out_unit) = r.units(), r.units(1)
    fixed = {
        "SOFTMAX": softmax,
        "EACH": each,
        "MEAN": mean,
        "STATISTICS": statistics,
        "WEIGHT": weight is not None,
        "SMOOTH": bool(smoothing),
        "WIDE": wide(x.dtype),
        "UNIT_ROW": unit_row,
        "UNIT": unit,
        "OUT_UNIT_ROW": out_unit_row,
        "OUT_UNIT": out_unit,
        **r.constants,
    }
    fixed["BN"] = min(r.bn, 4096)
    program = Program(_backward, types, fixed, warps=min(r.warps, 8))
    sizes = (*r.numbers, *r.strides(), *r.strides(1))
    numbers = (*sizes, ignore, float(smoothing))
    promised(program, 8, sizes)
    step, grid = r.rows * (8 if number == "fp64" else 4), (r.tiles,)

    def launch(
        to: View, g: View, x: View | None, t: View, weight: View | None, total: View | None, kept: View | None
    ) -> None:
        g, t, x = contiguous(g) if each else g, contiguous(t), None if x is None else r.view(x)
        given = [0 if v is None else v.ptr for v in (x, t, weight, total, kept)]
        made = r.written(to)
        program(grid, made.ptr, g.ptr, *given, 0 if kept is None else kept.ptr + step, *numbers)
        if made is not to:
            copy_view(View(to.ptr, by_class(to.spec), to.storage), made)

    return launch


@cuda("_cross_entropy_backward", accepts=takes)
def cross_entropy_backward(g: Slot, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float) -> Run:
    go = _gradient(x.spec, g, t, weight, ignore, smoothing, softmax=True, each=True)
    if go is None:
        return None
    return lambda outs, g, x, t, weight: go(outs[0], g, x, t, weight, None, None)


@cuda("_cross_entropy_reduced_backward", accepts=takes, into=True, careful=True)
def cross_entropy_reduced_backward(
    g: Slot, x: Slot, t: Slot, weight: Slot | None, total: Slot, kept: Slot, ignore: int, smoothing: float, mean: bool
) -> Run:
    go = _gradient(x.spec, g, t, weight, ignore, smoothing, softmax=True, each=False, mean=mean, statistics=True)
    if go is None or not kept.contiguous:
        return None
    return lambda outs, g, x, t, weight, total, kept: go(outs[0], g, x, t, weight, total, kept)


@cuda("_nll_backward", accepts=takes)
def nll_backward(
    g: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float, size: tuple[int, ...], dtype: dt.dtype
) -> Run:
    if dtype not in FLOATS:
        return None
    x = Spec(Layout(tuple(size)), dtype, g.spec.device)
    go = _gradient(x, g, t, weight, ignore, smoothing, softmax=False, each=True)
    return None if go is None else lambda outs, g, t, weight: go(outs[0], g, None, t, weight, None, None)


@cuda("_nll_reduced_backward", accepts=takes)
def nll_reduced_backward(
    g: Slot, total: Slot, t: Slot, weight: Slot | None, ignore: int, mean: bool, size: tuple[int, ...], dtype: dt.dtype
) -> Run:
    if dtype not in FLOATS:
        return None
    x = Spec(Layout(tuple(size)), dtype, g.spec.device)
    go = _gradient(x, g, t, weight, ignore, 0.0, softmax=False, each=False, mean=mean)
    if go is None:
        return None
    return lambda outs, g, total, t, weight: go(outs[0], g, None, t, weight, total, None)
