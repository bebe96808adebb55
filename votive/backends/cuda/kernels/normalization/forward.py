"""layer_norm and rms_norm, also of a sum that is made on the way: a program per few rows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import triton
import triton.language as tl

from .....core.layout import Spec
from ....common.slot import Slot
from ...device import math as m
from ...programs.layouts import contiguous, contiguous_output, row_stride, rows_block, sizes
from ...programs.program import TYPE, Program
from ...programs.types import Run, floats, wide
from ...rows import cuda
from ...runtime.views import View


@triton.jit
def _norm(
    o,
    mean_out,
    rstd_out,
    total,
    x,
    delta,
    weight,
    bias,
    rows,
    n,
    sx,
    sd,
    eps,
    CENTRE: tl.constexpr,
    ADD: tl.constexpr,
    WEIGHT: tl.constexpr,
    BIAS: tl.constexpr,
    WIDE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    i = tl.arange(0, BN)[None, :]
    inside = (row < rows) & (i < n)
    v = tl.load(x + row * sx + i, mask=inside, other=0.0).to(WIDE)
    if ADD:
        v += tl.load(delta + row * sd + i, mask=inside, other=0.0).to(WIDE)
        kept = v.to(total.dtype.element_ty)
        tl.store(total + row * n + i, kept, mask=inside)
        v = kept.to(WIDE)  # what a later reader of the sum sees

    if CENTRE:
        mean = (tl.sum(v, 1) / n)[:, None]
        v = tl.where(inside, v - mean, 0.0)
    rstd = m.f_div(tl.full((), 1, WIDE), m.f_sqrt(tl.sum(v * v, 1) / n + eps.to(WIDE)))[:, None]
    y = v * rstd
    if WEIGHT:
        y = y * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
    if BIAS:
        y = y + tl.load(bias + i, mask=i < n, other=0.0).to(WIDE)

    tl.store(o + row * n + i, y.to(o.dtype.element_ty), mask=inside)
    if CENTRE:
        tl.store(mean_out + row, mean.to(mean_out.dtype.element_ty), mask=row < rows)
    tl.store(rstd_out + row, rstd.to(rstd_out.dtype.element_ty), mask=row < rows)


@triton.jit
def _long_norm(
    o,
    mean_out,
    rstd_out,
    total,
    x,
    delta,
    weight,
    bias,
    rows,
    n,
    sx,
    sd,
    eps,
    CENTRE: tl.constexpr,
    ADD: tl.constexpr,
    WEIGHT: tl.constexpr,
    BIAS: tl.constexpr,
    WIDE: tl.constexpr,
    BN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((), WIDE)
    if ADD:
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)
            v = tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
            v += tl.load(delta + row * sd + i, mask=i < n, other=0.0).to(WIDE)
            tl.store(total + row * n + i, v.to(total.dtype.element_ty), mask=i < n)
        tl.debug_barrier()  # the sum is read back below
        x = total
        sx = n.to(tl.int64)
    if CENTRE:
        sums = tl.zeros((BN,), WIDE)
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)
            sums += tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
        mean = tl.sum(sums, 0) / n
    squares = tl.zeros((BN,), WIDE)
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        v = tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
        v = tl.where(i < n, v - mean, 0.0)
        squares += v * v
    rstd = m.f_div(tl.full((), 1, WIDE), m.f_sqrt(tl.sum(squares, 0) / n + eps.to(WIDE)))
    for start in range(0, n, BN):
        i = start + tl.arange(0, BN)
        y = (tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE) - mean) * rstd
        if WEIGHT:
            y = y * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
        if BIAS:
            y = y + tl.load(bias + i, mask=i < n, other=0.0).to(WIDE)
        tl.store(o + row * n + i, y.to(o.dtype.element_ty), mask=i < n)
    if CENTRE:
        tl.store(mean_out + row, mean.to(mean_out.dtype.element_ty))
    tl.store(rstd_out + row, rstd.to(rstd_out.dtype.element_ty))


LONGEST = 16384  # rows that a program keeps whole
BYTES = "*i8"  # stands for an address that the kernel does not use


def kind(slot: Slot | None) -> str:
    """The type of an argument's address."""
    return BYTES if slot is None else "*" + TYPE[slot.dtype]


def at(v: View | None) -> int:
    """An address; 0 for what is not there."""
    return 0 if v is None else v.ptr


def forward(
    x: Slot, delta: Slot | None, weight: Any, bias: Any, outs: tuple[Spec, Spec], dims: int, eps: float, centre: bool
) -> Any:
    """What launches a norm of x, or of x + delta; `outs`: the result's spec and the sum's."""
    spec: Spec = x.spec
    rows, n = sizes(spec, dims)
    if not spec.numel:
        return None
    distance = row_stride(spec, dims)
    sx = n if distance is None else distance
    apart = n if delta is None else row_stride(delta.spec, dims)
    sd = n if apart is None else apart
    W = wide(outs[1].dtype)
    number = "fp64" if W == tl.float64 else "fp32"  # noqa: SIM300
    types = [
        "*" + TYPE[outs[0].dtype],
        "*" + number,
        "*" + number,
        "*" + TYPE[outs[1].dtype],
        kind(x),
        kind(delta),
        kind(weight),
        kind(bias),
        "i32",
        "i32",
        "i64",
        "i64",
        number,
    ]
    fixed: dict[str, Any] = {
        "CENTRE": centre,
        "ADD": delta is not None,
        "WEIGHT": weight is not None,
        "BIAS": bias is not None,
        "WIDE": W,
    }
    if n <= LONGEST:
        bm, bn, warps = rows_block(rows, n, LONGEST)
        program = Program(_norm, types, {**fixed, "BM": bm, "BN": bn}, warps=warps)
        grid = (-(-rows // bm),)
    else:
        program = Program(_long_norm, types, {**fixed, "BN": 4096}, warps=8)
        grid = (rows,)
    program.divisible = tuple(k for k, v in ((9, n), (10, sx), (11, sd)) if v % 16 == 0)

    parts = [s for s in (*outs, weight, bias) if s is not None]
    plain = None not in (distance, apart) and all(s.contiguous for s in parts)

    def launch(o: View, mean: int, rstd: int, total: View | None, x: View, delta: Any, weight: Any, bias: Any) -> None:
        if plain:
            program(grid, o.ptr, mean, rstd, at(total), x.ptr, at(delta), at(weight), at(bias), rows, n, sx, sd, eps)
            return
        x = x if distance is not None else contiguous(x)
        if delta is not None and apart is None:
            delta = contiguous(delta)
        # Held until the launch: a copy that is let go may be written over.
        weight = None if weight is None else contiguous(weight)
        bias = None if bias is None else contiguous(bias)
        with contiguous_output(o) as to, nullcontext() if total is None else contiguous_output(total) as kept:
            program(grid, to.ptr, mean, rstd, at(kept), x.ptr, at(delta), at(weight), at(bias), rows, n, sx, sd, eps)

    return launch


@cuda("_layer_norm", accepts=floats)
def layer_norm(x: Slot, weight: Slot | None, bias: Slot | None, dims: int, eps: float) -> Run:
    launch = forward(x, None, weight, bias, (x.spec, x.spec), dims, float(eps), True)
    if launch is None:
        return None

    def run(outs: list[View], x: View, weight: View | None, bias: View | None) -> None:
        launch(outs[0], outs[1].ptr, outs[2].ptr, None, x, None, weight, bias)

    return run


@cuda("_rms_norm", accepts=floats)
def rms_norm(x: Slot, weight: Slot | None, dims: int, eps: float) -> Run:
    launch = forward(x, None, weight, None, (x.spec, x.spec), dims, float(eps), False)
    if launch is None:
        return None
    return lambda outs, x, weight: launch(outs[0], 0, outs[1].ptr, None, x, None, weight, None)
