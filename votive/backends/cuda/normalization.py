"""layer_norm and rms_norm with their gradients: a program per few rows; the gradients of weights
are summed in two steps.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core.layout import Layout, Spec
from . import device_math as m
from .by_rows import block, dense, power, row_stride, sizes, written
from .data import View, empty
from .program import TYPE, Program
from .rows import cuda
from .runtime import here_count
from .softmax import floats, wide


@triton.jit
def _norm(
    o, mean_out, rstd_out, x, weight, bias, rows, n, sx, eps,
    CENTRE: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    i = tl.arange(0, BN)[None, :]
    inside = (row < rows) & (i < n)
    v = tl.load(x + row * sx + i, mask=inside, other=0.0).to(WIDE)

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
    o, mean_out, rstd_out, x, weight, bias, rows, n, sx, eps,
    CENTRE: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr, WIDE: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    mean = tl.zeros((), WIDE)
    if CENTRE:
        total = tl.zeros((BN,), WIDE)
        for start in range(0, n, BN):
            i = start + tl.arange(0, BN)
            total += tl.load(x + row * sx + i, mask=i < n, other=0.0).to(WIDE)
        mean = tl.sum(total, 0) / n
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


@triton.jit
def _by_input(
    by_x, g, x, mean, rstd, weight, rows, n, sg, sx,
    CENTRE: tl.constexpr, WEIGHT: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    i = tl.arange(0, BN)[None, :]
    here = (row < rows) & (i < n)
    a = tl.load(g + row * sg + i, mask=here, other=0.0).to(WIDE)
    v = tl.load(x + row * sx + i, mask=here, other=0.0).to(WIDE)
    r = tl.load(rstd + row, mask=row < rows, other=0.0).to(WIDE)
    if WEIGHT:
        a = a * tl.load(weight + i, mask=i < n, other=0.0).to(WIDE)
    if CENTRE:
        v = tl.where(here, v - tl.load(mean + row, mask=row < rows, other=0.0).to(WIDE), 0.0)

    v = v * r
    y = a - v * (tl.sum(a * v, 1) / n)[:, None]
    if CENTRE:
        y = y - (tl.sum(a, 1) / n)[:, None]

    tl.store(by_x + row * n + i, (y * r).to(by_x.dtype.element_ty), mask=here)


@triton.jit
def _by_weights(
    by_w, by_b, g, x, mean, rstd, rows, n, sg, sx, each,
    CENTRE: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
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
    at = part.to(tl.int64) * n + tl.program_id(0) * BN + tl.arange(0, BN)
    inside = tl.program_id(0) * BN + tl.arange(0, BN) < n
    tl.store(by_w + at, tl.sum(sum_w, 0), mask=inside)
    if CENTRE:
        tl.store(by_b + at, tl.sum(sum_b, 0), mask=inside)


@triton.jit
def _columns(o, parts, n, count, BN: tl.constexpr, BM: tl.constexpr):
    """Sum of `count` rows."""
    i = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), parts.dtype.element_ty)
    for start in range(0, count, BM):
        k = start + tl.arange(0, BM)[:, None]
        total += tl.load(parts + k.to(tl.int64) * n + i, mask=(k < count) & (i < n), other=0.0)
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(o + at, tl.sum(total, 0).to(o.dtype.element_ty), mask=at < n)


ROWS, COLUMNS = 16, 128  # of the tiles that sum gradients of weights
LONGEST = 16384  # rows that a program keeps whole
BYTES = "*i8"  # stands for an address that the kernel does not use


def _type(slot: Any) -> str:
    return BYTES if slot is None else "*" + TYPE[slot.dtype]


def _forward(x: Any, weight: Any, bias: Any, dims: int, eps: float, centre: bool) -> Any:
    spec: Spec = x.spec
    rows, n = sizes(spec, dims)
    if not spec.numel:
        return None
    distance = row_stride(spec, dims)
    sx = n if distance is None else distance
    kind = "*" + TYPE[spec.dtype]
    number = "fp64" if wide(spec.dtype) == tl.float64 else "fp32"
    types = [
        kind,
        "*" + number,
        "*" + number,
        kind,
        _type(weight),
        _type(bias),
        "i32",
        "i32",
        "i64",
        number,
    ]
    fixed: dict[str, Any] = {
        "CENTRE": centre,
        "WEIGHT": weight is not None,
        "BIAS": bias is not None,
        "WIDE": wide(spec.dtype),
    }
    if n <= LONGEST:
        bn, warps = block(n)
        bm = max(1, min(1024 // bn, power(rows)))
        program = Program(_norm, types, {**fixed, "BM": bm, "BN": bn}, warps=warps)
        grid = (-(-rows // bm),)
    else:
        program = Program(_long_norm, types, {**fixed, "BN": 4096}, warps=8)
        grid = (rows,)
    program.divisible = tuple(k for k, v in ((7, n), (8, sx)) if v % 16 == 0)

    def launch(o: View, mean: int, rstd: int, x: View, weight: Any, bias: Any) -> None:
        if distance is None:
            x = dense(x)
        weight = None if weight is None else dense(weight)
        bias = None if bias is None else dense(bias)
        with written(o) as to:
            program(
                grid, to.ptr, mean, rstd, x.ptr, 0 if weight is None else weight.ptr,
                0 if bias is None else bias.ptr, rows, n, sx, eps,
            )  # fmt: skip

    return launch


@cuda("_layer_norm", accepts=floats)
def layer_norm(x: Any, weight: Any, bias: Any, dims: int, eps: float) -> Any:
    launch = _forward(x, weight, bias, dims, float(eps), True)
    if launch is None:
        return None
    return lambda outs, x, weight, bias: launch(outs[0], outs[1].ptr, outs[2].ptr, x, weight, bias)


@cuda("_rms_norm", accepts=floats)
def rms_norm(x: Any, weight: Any, dims: int, eps: float) -> Any:
    launch = _forward(x, weight, None, dims, float(eps), False)
    if launch is None:
        return None
    return lambda outs, x, weight: launch(outs[0], 0, outs[1].ptr, x, weight, None)


def _backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: int, by_x: bool, by_w: bool
) -> Any:
    spec: Spec = x.spec
    rows, n = sizes(spec, dims)
    centre = mean is not None
    if not spec.numel or n > LONGEST:
        return None
    if not rstd.contiguous or (centre and not mean.contiguous):
        return None
    dg, dx = row_stride(g.spec, dims), row_stride(spec, dims)
    sg, sx = n if dg is None else dg, n if dx is None else dx
    W = wide(spec.dtype)
    number = "*fp64" if W == tl.float64 else "*fp32"  # noqa: SIM300
    read = ["*" + TYPE[g.dtype], "*" + TYPE[spec.dtype], number, number]
    bn, warps = block(n)
    bm = max(1, min(1024 // bn, power(rows)))
    inputs = Program(
        _by_input, ["*" + TYPE[spec.dtype], *read, _type(weight), "i32", "i32", "i64", "i64"],
        {"CENTRE": centre, "WEIGHT": weight is not None, "WIDE": W, "BM": bm, "BN": bn},
        warps=warps,
    )  # fmt: skip
    inputs.divisible = tuple(k for k, v in ((7, n), (8, sg), (9, sx)) if v % 16 == 0)
    columns = -(-n // COLUMNS)
    parts = max(1, min(-(-rows // ROWS), 8 * here_count() // columns))
    each = -(-rows // parts)
    each = -(-each // ROWS) * ROWS
    parts = -(-rows // each)
    weights = Program(
        _by_weights, [number, number, *read, "i32", "i32", "i64", "i64", "i32"],
        {"CENTRE": centre, "WIDE": W, "BM": ROWS, "BN": COLUMNS},
    )  # fmt: skip
    weights.divisible = tuple(k for k, v in ((7, n), (8, sg), (9, sx)) if v % 16 == 0)
    wide_spec = Spec(Layout((parts, n)), rstd.dtype, spec.device)
    total = Program(_columns, [number, number, "i32", "i32"], {"BN": 32, "BM": 32})
    total.divisible = (2,) if n % 16 == 0 else ()
    several = (-(-n // 32),)

    def run(outs: list[View], g: View, x: View, mean: Any, rstd: View, weight: Any) -> None:
        g, x = g if dg is not None else dense(g), x if dx is not None else dense(x)
        weight = None if weight is None else dense(weight)
        m = mean.ptr if centre else rstd.ptr
        if by_x:
            with written(outs[0]) as to:
                inputs(
                    (-(-rows // bm),), to.ptr, g.ptr, x.ptr, m, rstd.ptr,
                    0 if weight is None else weight.ptr, rows, n, sg, sx,
                )  # fmt: skip
        if not by_w:
            return
        w = empty(wide_spec) if parts > 1 else outs[1]
        b = (empty(wide_spec) if parts > 1 else outs[2]) if centre else w
        weights((columns, parts), w.ptr, b.ptr, g.ptr, x.ptr, m, rstd.ptr, rows, n, sg, sx, each)
        if parts > 1:
            total(several, outs[1].ptr, w.ptr, n, parts)
            if centre:
                total(several, outs[2].ptr, b.ptr, n, parts)

    return run


@cuda("_layer_norm_backward", accepts=floats)
def layer_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_affine: bool
) -> Any:
    return _backward(g, x, mean, rstd, weight, dims, by_input, by_affine)


@cuda("_rms_norm_backward", accepts=floats)
def rms_norm_backward(
    g: Any, x: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_weight: bool
) -> Any:
    run = _backward(g, x, None, rstd, weight, dims, by_input, by_weight)
    if run is None:
        return None
    return lambda outs, g, x, rstd, weight: run(outs, g, x, None, rstd, weight)
