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
from ...programs.layouts import contiguous, row_stride
from ...programs.program import TYPE, Program
from ...programs.types import FLOATS, Run, wide
from ...rows import cuda
from ...runtime.views import View, empty
from .forward import BYTES, Rows, by_class, number_of, takes


@triton.jit
def _backward(
    o,
    g,
    x,
    target,
    weight,
    total,
    tops,
    totals,
    n,
    so,
    sx,
    ignore,
    smoothing,
    SOFTMAX: tl.constexpr,
    EACH: tl.constexpr,
    MEAN: tl.constexpr,
    STATISTICS: tl.constexpr,
    WEIGHT: tl.constexpr,
    SMOOTH: tl.constexpr,
    WIDE: tl.constexpr,
    BN: tl.constexpr,
):
    """`g (Q softmax(x) - q)`, or `-g q` without softmax."""
    row = tl.program_id(0).to(tl.int64)
    t = tl.load(target + row).to(tl.int64)
    used = (t != ignore) & (t >= 0) & (t < n)
    at = tl.where(used, t, 0)
    a = tl.load(g + row).to(WIDE) if EACH else tl.load(g).to(WIDE)
    if MEAN:
        a = a / tl.load(total).to(WIDE)
    a = tl.where(used, a, 0.0)
    s = smoothing.to(WIDE)
    w = tl.full((), 1, WIDE)
    if WEIGHT:
        w = tl.load(weight + at).to(WIDE)
    own = a * w
    if SMOOTH:
        own = own * (1 - s)
    share = tl.zeros((), WIDE)
    top = tl.full((), -float("inf"), WIDE)
    sums = tl.zeros((), WIDE)
    if STATISTICS:
        top = tl.load(tops + row)
        sums = tl.load(totals + row)
    if SMOOTH or (SOFTMAX and STATISTICS == 0):
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)
            if SMOOTH:
                c = tl.full((BN,), 1, WIDE)
                if WEIGHT:
                    c = tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
                share += tl.sum(tl.where(i < n, c, 0.0), 0)
            if SOFTMAX and STATISTICS == 0:
                v = tl.load(x + row * sx + i, mask=i < n, other=-float("inf")).to(WIDE)
                higher = tl.maximum(top, tl.max(v, 0))
                base = tl.where(higher == -float("inf"), 0.0, higher)
                sums = sums * m.swift_exp(top - base) + tl.sum(m.swift_exp(v - base), 0)
                top = higher
    q = own
    if SMOOTH:
        q = q + a * (s / n) * share
    scale = q / tl.where(sums == 0, 1.0, sums)
    base = tl.where(top == -float("inf"), 0.0, top)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        y = tl.zeros((BN,), WIDE)
        if SOFTMAX:
            v = tl.load(x + row * sx + i, mask=i < n, other=-float("inf")).to(WIDE)
            y = m.swift_exp(v - base) * scale
        if SMOOTH:
            c = tl.full((BN,), 1, WIDE)
            if WEIGHT:
                c = tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
            y = y - a * (s / n) * c
        y = y - tl.where(i == at, own, 0.0)
        tl.store(o + row * so + i, y.to(o.dtype.element_ty), mask=i < n)


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
    r = Rows(x)
    target = by_class(x.dense_like())
    stride = row_stride(target)
    straight, so = stride is not None, r.n if stride is None else stride
    number = number_of(x.dtype)
    types = [
        "*" + TYPE[x.dtype],
        "*" + TYPE[g.dtype],
        "*" + TYPE[x.dtype],
        "*" + TYPE[t.dtype],
        BYTES if weight is None else "*" + TYPE[weight.dtype],
        "*" + number,
        "*" + number,
        "*" + number,
        "i32",
        "i64",
        "i64",
        "i64",
        number,
    ]
    fixed = {
        "SOFTMAX": softmax,
        "EACH": each,
        "MEAN": mean,
        "STATISTICS": statistics,
        "WEIGHT": weight is not None,
        "SMOOTH": bool(smoothing),
        "WIDE": wide(x.dtype),
        "BN": min(r.block, 4096),
    }
    program = Program(_backward, types, fixed, warps=min(r.warps, 8))
    program.divisible = tuple(k for k, v in ((8, r.n), (9, so), (10, r.stride)) if v % 16 == 0)
    step = r.rows * (8 if number == "fp64" else 4)

    def launch(
        to: View, g: View, x: View | None, t: View, weight: View | None, total: View | None, kept: View | None
    ) -> None:
        made = View(to.ptr, target, to.storage) if straight else empty(target.like(target.shape))
        g, t, x = contiguous(g) if each else g, contiguous(t), None if x is None else r.view(x)
        program(
            (r.rows,),
            made.ptr,
            g.ptr,
            0 if x is None else x.ptr,
            t.ptr,
            0 if weight is None else weight.ptr,
            0 if total is None else total.ptr,
            0 if kept is None else kept.ptr,
            0 if kept is None else kept.ptr + step,
            r.n,
            so,
            r.stride,
            ignore,
            float(smoothing),
        )
        if not straight:
            copy_view(View(to.ptr, target, to.storage), made)

    return launch


@cuda("_cross_entropy_backward", accepts=takes)
def cross_entropy_backward(g: Slot, x: Slot, t: Slot, weight: Slot | None, ignore: int, smoothing: float) -> Run:
    go = _gradient(x.spec, g, t, weight, ignore, smoothing, softmax=True, each=True)
    if go is None:
        return None
    return lambda outs, g, x, t, weight: go(outs[0], g, x, t, weight, None, None)


@cuda("_cross_entropy_reduced_backward", accepts=takes)
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
