"""The gradients of layer_norm and rms_norm, also behind a sum whose own gradient comes along.

A program goes over many rows and sums the gradients of weight and bias on its way, so that the
inputs are read once; what the programs found is added in a second step. Rows too long for
registers go over the input twice more.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import triton
import triton.language as tl

from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.layouts import contiguous, contiguous_output, row_stride, rows_block, sizes
from ...programs.program import TYPE, Program
from ...programs.types import Run, floats, wide
from ...rows import cuda
from ...runtime import here_count
from ...runtime.views import View, empty, zero
from .forward import BYTES, at, kind


@triton.jit
def _gradients(
    by_x, by_delta, by_w, by_b, g, skip, x, mean, rstd, weight, rows, n, sg, ss, sx, each,
    CENTRE: tl.constexpr, WEIGHT: tl.constexpr, INPUT: tl.constexpr, AFFINE: tl.constexpr,
    SKIP: tl.constexpr, DELTA: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Rows from program * each on: all that is asked for, in one reading."""
    part = tl.program_id(0)
    i = tl.arange(0, BN)[None, :]
    columns = i < n
    if WEIGHT:
        w = tl.load(weight + i, mask=columns, other=0.0).to(WIDE)
    sum_w = tl.zeros((BM, BN), WIDE)
    sum_b = tl.zeros((BM, BN), WIDE)
    end = tl.minimum(part * each + each, rows)
    for start in tl.range(part * each, end, BM, num_stages=STAGES):
        row = (start + tl.arange(0, BM)[:, None]).to(tl.int64)
        here = (row < end) & columns
        a = tl.load(g + row * sg + i, mask=here, other=0.0).to(WIDE)
        v = tl.load(x + row * sx + i, mask=here, other=0.0).to(WIDE)
        r = tl.load(rstd + row, mask=row < end, other=0.0).to(WIDE)
        if SKIP:
            s = tl.load(skip + row * ss + i, mask=here, other=0.0).to(WIDE)
        if CENTRE:
            v = tl.where(here, v - tl.load(mean + row, mask=row < end, other=0.0).to(WIDE), 0.0)

        v = v * r
        if AFFINE:
            sum_w += a * v
            if CENTRE:
                sum_b += a
        if INPUT:
            if WEIGHT:
                a = a * w
            y = a - v * (tl.sum(a * v, 1) / n)[:, None]
            if CENTRE:
                y = y - (tl.sum(a, 1) / n)[:, None]
            y = y * r
            if SKIP:
                y = y + s

            tl.store(by_x + row * n + i, y.to(by_x.dtype.element_ty), mask=here)
            if DELTA:
                tl.store(by_delta + row * n + i, y.to(by_delta.dtype.element_ty), mask=here)
    if AFFINE:
        to = part.to(tl.int64) * n + tl.arange(0, BN)
        tl.store(by_w + to, tl.sum(sum_w, 0), mask=tl.arange(0, BN) < n)
        if CENTRE:
            tl.store(by_b + to, tl.sum(sum_b, 0), mask=tl.arange(0, BN) < n)


@triton.jit
def _terms(g, x, weight, row, i, n, sg, sx, centre, r, WEIGHT: tl.constexpr, WIDE: tl.constexpr):
    """The incoming gradient, weighted, and the normalised value at some places of a row."""
    a = tl.load(g + row * sg + i, mask=i < n, other=0.0).to(WIDE)
    if WEIGHT:
        a = a * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
    v = (tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE) - centre) * r
    return a, v


@triton.jit
def _long_by_input(
    by_x,
    by_delta,
    g,
    skip,
    x,
    mean,
    rstd,
    weight,
    n,
    sg,
    ss,
    sx,
    CENTRE: tl.constexpr,
    WEIGHT: tl.constexpr,
    SKIP: tl.constexpr,
    DELTA: tl.constexpr,
    WIDE: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    r = tl.load(rstd + row).to(WIDE)
    centre = tl.zeros((), WIDE)
    if CENTRE:
        centre = tl.load(mean + row).to(WIDE)
    products = tl.zeros((BN,), WIDE)
    sums = tl.zeros((BN,), WIDE)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        a, v = _terms(g, x, weight, row, i, n, sg, sx, centre, r, WEIGHT, WIDE)
        products += a * v
        sums += a
    along = tl.sum(products, 0) / n
    middle = tl.sum(sums, 0) / n
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        a, v = _terms(g, x, weight, row, i, n, sg, sx, centre, r, WEIGHT, WIDE)
        y = a - v * along
        if CENTRE:
            y = y - middle
        y = y * r
        if SKIP:
            y = y + tl.load(skip + row * ss + i, mask=i < n, other=0.0).to(WIDE)
        tl.store(by_x + row * n + i, y.to(by_x.dtype.element_ty), mask=i < n)
        if DELTA:
            tl.store(by_delta + row * n + i, y.to(by_delta.dtype.element_ty), mask=i < n)


@triton.jit
def _long_by_weights(
    by_w,
    by_b,
    g,
    x,
    mean,
    rstd,
    rows,
    n,
    sg,
    sx,
    each,
    CENTRE: tl.constexpr,
    WIDE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Sums over a range of rows, for some columns."""
    i = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    part = tl.program_id(1)
    sum_w = tl.zeros((BM, BN), WIDE)
    sum_b = tl.zeros((BM, BN), WIDE)
    end = tl.minimum(part * each + each, rows)
    for start in range(part * each, end, BM):
        row = (start + tl.arange(0, BM)[:, None]).to(tl.int64)
        here = (row < end) & (i < n)
        a = tl.load(g + row * sg + i, mask=here, other=0.0).to(WIDE)
        v = tl.load(x + row * sx + i, mask=here, other=0.0).to(WIDE)
        r = tl.load(rstd + row, mask=row < end, other=0.0).to(WIDE)
        if CENTRE:
            v = v - tl.load(mean + row, mask=row < end, other=0.0).to(WIDE)
            sum_b += a
        sum_w += a * (v * r)
    to = part.to(tl.int64) * n + tl.program_id(0) * BN + tl.arange(0, BN)
    inside = tl.program_id(0) * BN + tl.arange(0, BN) < n
    tl.store(by_w + to, tl.sum(sum_w, 0), mask=inside)
    if CENTRE:
        tl.store(by_b + to, tl.sum(sum_b, 0), mask=inside)


@triton.jit
def _columns(to_w, to_b, w, b, n, count, BN: tl.constexpr, BM: tl.constexpr):
    """Sums of `count` rows: of w, and by the second row of programs of b."""
    i = tl.program_id(0) * BN + tl.arange(0, BN)
    second = tl.program_id(1) == 1
    parts = tl.where(second, b, w)
    total = tl.zeros((BM, BN), w.dtype.element_ty)
    for start in range(0, count, BM):
        k = start + tl.arange(0, BM)[:, None]
        here = (k < count) & (i < n)[None, :]
        total += tl.load(parts + k.to(tl.int64) * n + i[None, :], mask=here, other=0.0)
    o = tl.where(second, to_b, to_w)
    tl.store(o + i, tl.sum(total, 0).to(to_w.dtype.element_ty), mask=i < n)


WHOLE = 8192  # rows up to here are kept in registers beside the sums for weight and bias
ROWS, COLUMNS = 16, 128  # of the tiles that sum gradients of weights behind longer rows
PROGRAMS = 4  # per multiprocessor, of short rows
ELEMENTS = 1024  # that a program reads at once
STAGES = 3  # of rows on their way while others are computed


def _parts(rows: int, bm: int, most: int) -> tuple[int, int]:
    """(programs, rows of each) such that none is left without rows."""
    blocks = -(-rows // bm)
    each = -(-blocks // max(1, min(blocks, most))) * bm
    return -(-rows // each), each


def backward(
    g: Slot,
    skip: Any,
    x: Slot,
    mean: Slot | None,
    rstd: Slot,
    weight: Any,
    dims: int,
    by_x: Spec | None,
    by_delta: Spec | None,
    by_w: bool,
) -> Any:
    """What launches the gradients by x (which is the sum, where there is one), and by weights."""
    spec: Spec = x.spec
    rows, n = sizes(spec, dims)
    centre = mean is not None
    if not spec.numel:
        return _nothing
    if not rstd.contiguous or (mean is not None and not mean.contiguous):
        return None
    distances = [None if v is None else row_stride(v.spec, dims) for v in (g, skip, x)]
    sg, ss, sx = (n if d is None else d for d in distances)
    W = wide(spec.dtype)
    number = "*fp64" if W == tl.float64 else "*fp32"  # noqa: SIM300
    outs = [BYTES if s is None else "*" + TYPE[s.dtype] for s in (by_x, by_delta)]
    read = [kind(g), kind(skip), kind(x), number, number, kind(weight)]
    fixed: dict[str, Any] = {"CENTRE": centre, "WEIGHT": weight is not None, "WIDE": W}
    also: dict[str, Any] = {"SKIP": skip is not None, "DELTA": by_delta is not None}
    whole = n <= WHOLE
    if whole:
        bm, bn, warps = rows_block(rows, n, WHOLE, ELEMENTS)
        warps = max(warps, 4) if bn > 256 else warps
        parts, each = _parts(rows, bm, max(2, min(PROGRAMS, 8192 // bn)) * here_count())
        all_of_it = Program(
            _gradients,
            [*outs, number, number, *read, "i32", "i32", "i64", "i64", "i64", "i32"],
            {**fixed, **also, "INPUT": by_x is not None, "AFFINE": by_w, "BM": bm, "BN": bn, "STAGES": STAGES},
            warps=warps,
        )
        all_of_it.divisible = _aligned((11, n), (12, sg), (13, ss), (14, sx))
    else:
        inputs = Program(
            _long_by_input, [*outs, *read, "i32", "i64", "i64", "i64"], {**fixed, **also, "BN": 4096}, warps=8
        )
        inputs.divisible = _aligned((8, n), (9, sg), (10, ss), (11, sx))
        across = -(-n // COLUMNS)
        parts, each = _parts(rows, ROWS, 8 * here_count() // across)
        weights = Program(
            _long_by_weights,
            [number, number, kind(g), kind(x), number, number, "i32", "i32", "i64", "i64", "i32"],
            {"CENTRE": centre, "WIDE": W, "BM": ROWS, "BN": COLUMNS},
        )
        weights.divisible = _aligned((7, n), (8, sg), (9, sx))
    partial = Spec(Layout((parts, n)), rstd.dtype, spec.device)
    total = Program(_columns, [number, number, number, number, "i32", "i32"], {"BN": 32, "BM": 64}, warps=8)
    total.divisible = _aligned((4, n))
    joins = (-(-n // 32), 1 + centre)

    def run(
        to: View | None,
        to_delta: View | None,
        to_w: View,
        to_b: Any,
        g: View,
        skip: Any,
        x: View,
        mean: View,
        rstd: View,
        weight: View | None,
    ) -> None:
        g, skip, x = (
            v if v is None or d is not None else contiguous(v) for v, d in zip((g, skip, x), distances, strict=True)
        )
        weight = None if weight is None else contiguous(weight)
        m = mean.ptr if centre else rstd.ptr
        w = b = None
        if by_w:
            w = empty(partial) if parts > 1 else to_w
            b = (empty(partial) if parts > 1 else to_b) if centre else w
        with ExitStack() as open_:
            to = None if to is None else open_.enter_context(contiguous_output(to))
            to_delta = None if to_delta is None else open_.enter_context(contiguous_output(to_delta))
            read = g.ptr, at(skip), x.ptr, m, rstd.ptr, at(weight)
            if whole:
                all_of_it((parts,), at(to), at(to_delta), at(w), at(b), *read, rows, n, sg, ss, sx, each)
            else:
                if to is not None:
                    inputs((rows,), at(to), at(to_delta), *read, n, sg, ss, sx)
                if by_w:
                    weights((across, parts), at(w), at(b), g.ptr, x.ptr, m, rstd.ptr, rows, n, sg, sx, each)
        if by_w and parts > 1:
            total(joins, to_w.ptr, at(to_b if centre else to_w), at(w), at(b), n, parts)

    return run


def _nothing(to: Any, to_delta: Any, *weights_and_read: Any) -> None:
    """Weights of no rows have gradients, which are zero."""
    for v in weights_and_read[:2]:
        if v is not None and v.spec.numel:
            zero(v)


def _aligned(*sizes: tuple[int, int]) -> tuple[int, ...]:
    """Positions of arguments that are multiples of 16."""
    return tuple(k for k, v in sizes if v % 16 == 0)


@cuda("_layer_norm_backward", accepts=floats)
def layer_norm_backward(
    g: Slot, x: Slot, mean: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_affine: bool
) -> Run:
    into = x.spec if by_input else None
    run = backward(g, None, x, mean, rstd, weight, dims, into, None, by_affine)
    if run is None:
        return None
    return lambda outs, g, x, mean, rstd, weight: run(
        outs[0] if by_input else None, None, outs[1], outs[2], g, None, x, mean, rstd, weight
    )


@cuda("_rms_norm_backward", accepts=floats)
def rms_norm_backward(
    g: Slot, x: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_weight: bool
) -> Run:
    into = x.spec if by_input else None
    run = backward(g, None, x, None, rstd, weight, dims, into, None, by_weight)
    if run is None:
        return None
    return lambda outs, g, x, rstd, weight: run(
        outs[0] if by_input else None, None, outs[1], None, g, None, x, None, rstd, weight
    )
