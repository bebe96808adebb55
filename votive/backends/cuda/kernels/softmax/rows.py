"""Softmax, its logarithm, log-sum-exp and their gradients: one program per few rows."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core.layout import Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.layouts import contiguous, contiguous_output, last, row_stride, rows_block, sizes
from ...programs.program import Program, pointer
from ...programs.types import Run, floats, wide
from ...rows import cuda
from ...runtime import here_count
from ...runtime.views import View
from . import few, strided

WHOLE = 32768  # rows up to this length stay in registers
LONG = 2048  # from here on a few lines that lie apart are copied into rows


@triton.jit
def _softmax(o, x, rows, n, so, sx, LOG: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    i = tl.arange(0, BN)[None, :]
    inside = (row < rows) & (i < n)
    v = tl.load(x + row * sx + i, mask=inside, other=-float("inf")).to(WIDE)

    top = tl.max(v, 1)[:, None]
    top = tl.where(top == -float("inf"), 0.0, top)
    e = m.swift_exp(v - top)
    total = tl.sum(e, 1)[:, None]
    if LOG:
        y = v - top - m.f_log(total)
    else:
        y = e / total

    tl.store(o + row * so + i, y.to(o.dtype.element_ty), mask=inside)


@triton.jit
def _long_softmax(o, x, rows, n, so, sx, LOG: tl.constexpr, WIDE: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BN,), -float("inf"), WIDE)
    total = tl.zeros((BN,), WIDE)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        v = tl.load(x + row * sx + i, mask=i < n, other=-float("inf")).to(WIDE)
        higher = tl.maximum(top, v)
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * m.f_exp(top - base) + m.f_exp(v - base)
        top = higher
    highest = tl.max(top, 0)
    highest = tl.where(highest == -float("inf"), 0.0, highest)
    whole = tl.sum(total * m.f_exp(top - highest), 0)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        v = tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
        if LOG:
            y = v - highest - m.f_log(whole)
        else:
            y = m.f_exp(v - highest) / whole
        tl.store(o + row * so + i, y.to(o.dtype.element_ty), mask=i < n)


@triton.jit
def _backward(o, g, y, rows, n, so, sg, sy, LOG: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    if LOG:
        total = tl.zeros((BM, BN), WIDE)
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)[None, :]
            inside = (row < rows) & (i < n)
            total += tl.load(g + row * sg + i, mask=inside, other=0.0).to(WIDE)
    else:
        total = tl.zeros((BM, BN), WIDE)
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)[None, :]
            inside = (row < rows) & (i < n)
            a = tl.load(g + row * sg + i, mask=inside, other=0.0).to(WIDE)
            total += a * tl.load(y + row * sy + i, mask=inside, other=0.0).to(WIDE)
    whole = tl.sum(total, 1)[:, None]
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)[None, :]
        inside = (row < rows) & (i < n)
        a = tl.load(g + row * sg + i, mask=inside, other=0.0).to(WIDE)
        b = tl.load(y + row * sy + i, mask=inside, other=0.0).to(WIDE)
        if LOG:
            r = a - m.f_exp(b) * whole
        else:
            r = b * (a - whole)
        tl.store(o + row * so + i, r.to(o.dtype.element_ty), mask=inside)


def _forward(x: Spec, out: Spec, log: bool) -> Any:
    """A function (to, from) over rows, for specs whose last dimension is the one."""
    rows, n = sizes(x)
    so, sx = row_stride(out), row_stride(x)
    assert so is not None
    assert sx is not None
    types = [pointer(out.dtype), pointer(x.dtype), "i32", "i32", "i64", "i64"]
    fixed = {"LOG": log, "WIDE": wide(x.dtype)}
    if n <= WHOLE:
        bm, bn, warps = rows_block(rows, n, WHOLE)
        program = Program(_softmax, types, {**fixed, "BM": bm, "BN": bn}, warps=warps)
        grid = (-(-rows // bm),)
    elif (split := few.forward(x, out, log)) is not None:
        return split
    else:
        program = Program(_long_softmax, types, {**fixed, "BN": 4096}, warps=8)
        grid = (rows,)
    program.divisible = tuple(k for k, v in ((3, n), (4, so), (5, sx)) if v % 16 == 0)
    return lambda to, source: program(grid, to.ptr, source.ptr, rows, n, so, sx)


def _rows(x: Slot, dim: int, launch: Any, otherwise: Any, *extra: Any) -> Any:
    """Run something that goes along rows of `dim`; `otherwise` where they do not lie dense or alike. The result is
    dense.
    """
    spec: Spec = x.spec
    if not spec.numel:
        return lambda outs, *values: None
    if spec.ndim == 0:
        dim = 0
        spec = spec.like((1,))
    out = spec.dense_like()
    views = [spec, *(e.spec if e.ndim else e.spec.like((1,)) for e in extra)]
    permuted = [last(s, dim) for s in views]
    target = last(out, dim)
    direct = row_stride(target) is not None and all(row_stride(t) is not None for t in permuted)
    if direct:
        go = launch(permuted, target)

        def run(outs: list[View], *values: View) -> None:
            go(View(outs[0].ptr, target, None), *values[: len(views)])

        return run
    lines, n = sizes(permuted[0])
    # Side by side a program takes as many lines as a sector of memory holds.
    together = max(1, strided.SECTOR // spec.dtype.itemsize)
    if n > LONG and lines < together * here_count():
        return _packed(permuted, target, launch)
    along = otherwise(views, out, dim)
    return lambda outs, *values: along(outs[0], *values[: len(views)])


def _packed(permuted: list[Spec], target: Spec, launch: Any) -> Any:
    """A few long lines as rows of their own memory: side by side they would leave most processors without work."""
    go = launch([t.like(t.shape) for t in permuted], target.like(target.shape))

    def run(outs: list[View], *values: View) -> None:
        moved = [contiguous(View(v.ptr, t, v.storage)) for v, t in zip(values, permuted, strict=False)]
        with contiguous_output(View(outs[0].ptr, target, outs[0].storage)) as to:
            go(to, *moved)

    return run


def _softmax_of(x: Slot, dim: int, log: bool) -> Any:
    return _rows(
        x,
        dim,
        lambda specs, out: _forward(specs[0], out, log),
        lambda specs, out, dim: strided.forward(specs[0], out, dim, log),
    )


@cuda("_softmax", accepts=floats)
def softmax(x: Slot, dim: int) -> Run:
    return _softmax_of(x, dim % max(x.ndim, 1), False)


@cuda("_log_softmax", accepts=floats)
def log_softmax(x: Slot, dim: int) -> Run:
    return _softmax_of(x, dim % max(x.ndim, 1), True)


def _gradient(specs: list[Spec], out: Spec, log: bool) -> Any:
    y, g = specs
    rows, n = sizes(y)
    if n > WHOLE and (split := few.backward(y, g, out, log)) is not None:
        return split
    bm, bn, warps = rows_block(rows, n, 8192)
    strides = [s for s in map(row_stride, (out, g, y)) if s is not None]
    types = [pointer(out.dtype), pointer(g.dtype), pointer(y.dtype), "i32", "i32", "i64", "i64", "i64"]
    program = Program(_backward, types, {"LOG": log, "WIDE": wide(y.dtype), "BM": bm, "BN": bn}, warps=warps)
    program.divisible = tuple(k for k, v in zip((4, 5, 6, 7), (n, *strides), strict=True) if v % 16 == 0)
    grid = (-(-rows // bm),)
    return lambda to, y, g: program(grid, to.ptr, g.ptr, y.ptr, rows, n, *strides)


def _by_output(g: Slot, y: Slot, dim: int, log: bool) -> Any:
    if g.shape != y.shape:
        return None
    run = _rows(
        y,
        dim % max(y.ndim, 1),
        lambda specs, out: _gradient(specs, out, log),
        lambda specs, out, dim: strided.backward(specs[0], specs[1], out, dim, log),
        g,
    )
    return lambda outs, g, y: run(outs, y, g)


@cuda("_softmax_backward", accepts=floats)
def softmax_backward(g: Slot, y: Slot, dim: int) -> Run:
    return _by_output(g, y, dim, False)


@cuda("_log_softmax_backward", accepts=floats)
def log_softmax_backward(g: Slot, y: Slot, dim: int) -> Run:
    return _by_output(g, y, dim, True)
