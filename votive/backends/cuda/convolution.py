"""Convolution as products of matrices whose columns are never laid out: tiles gather the inputs
they need. One kernel serves convolution and its transpose, one the gradient of weights.

Positions are counted in three dimensions, with sizes of 1 in front. float32 is multiplied in full
precision unless `allow_tf32` of matrix products is set; half types are added up in float32.
"""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from . import precision
from .by_rows import dense, power
from .copy import copy_view
from .data import View, empty
from .keys import shared
from .program import pointer
from .reduction import _row
from .rows import cuda
from .runtime import here_count
from .softmax import floats, wide

BM, BN, BK = 128, 64, 32  # positions, channels, terms of a tile


@triton.jit
def _product(a, b, acc, PRECISION: tl.constexpr, DOT: tl.constexpr):
    if DOT:
        return tl.dot(a, b, acc, input_precision=PRECISION)
    # float64 has no tensor cores everywhere; tiles are small then.
    return acc + tl.sum(a[:, :, None] * b[None, :, :], 1)


@triton.jit
def _there(i, size):
    """0 <= i < size in one comparison."""
    return i.to(tl.uint32, bitcast=True) < size.to(tl.uint32)


@triton.jit
def _back(t, step, size):
    """(coordinate, whether it is there) of an input that windows `step` apart put at `t`."""
    i = t // step
    return i, (t >= 0) & (i * step == t) & (i < size)


@triton.jit
def _convolve(
    o, x, w, bias, M, COL, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, on, oc, od, oh, ow, DIMS: tl.constexpr, TRANSPOSED: tl.constexpr,
    BIAS: tl.constexpr, PRECISION: tl.constexpr, DOT: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Grid: (blocks of positions, blocks of channels, groups).
    g = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    col = tl.program_id(1) * BN + tl.arange(0, BN)
    there = m < M
    # First coordinates of each position's window, and of the first tap in a transposed one.
    w0 = m % OW * tw - pw if not TRANSPOSED else m % OW + pw
    rest = m // OW
    h0 = rest % OH * th - ph if not TRANSPOSED else rest % OH + ph
    rest = rest // OH
    d0 = rest % OD * td - pd if not TRANSPOSED else rest % OD + pd
    n = (rest // OD).to(tl.int64)
    base = x + n * xn + g.to(tl.int64) * C * xc
    if not TRANSPOSED:
        base += d0 * xd + h0 * xh + w0 * xw
    acc = tl.zeros((BM, BN), WIDE)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        c = k % C
        tap = k // C
        kw = tap % KW * dw
        kh = tap // KW % KH * dh
        kd = tap // KW // KH * dd
        good = there[:, None] & (k < K)[None, :]
        if TRANSPOSED:
            i, ok = _back(w0[:, None] - kw[None, :], tw, IW)
            good = good & ok
            at = (c * xc)[None, :] + i * xw
            if DIMS > 1:
                i, ok = _back(h0[:, None] - kh[None, :], th, IH)
                good = good & ok
                at += i * xh
            if DIMS > 2:
                i, ok = _back(d0[:, None] - kd[None, :], td, ID)
                good = good & ok
                at += i * xd
            a = tl.load(base[:, None] + at, mask=good, other=0.0)
        else:
            good = good & _there(w0[:, None] + kw[None, :], IW)
            if DIMS > 1:
                good = good & _there(h0[:, None] + kh[None, :], IH)
            if DIMS > 2:
                good = good & _there(d0[:, None] + kd[None, :], ID)
            at = c * xc + kd * xd + kh * xh + kw * xw
            a = tl.load(base[:, None] + at[None, :], mask=good, other=0.0)
        b = tl.load(
            w + (g * COL + col).to(tl.int64)[None, :] * K + k[:, None],
            mask=(k < K)[:, None] & (col < COL)[None, :], other=0.0,
        )  # fmt: skip
        acc = _product(a, b, acc, PRECISION, DOT)
    if BIAS:
        acc += tl.load(bias + g * COL + col, mask=col < COL, other=0.0).to(WIDE)[None, :]

    place = n * on + m // OW // OH % OD * od + m // OW % OH * oh + m % OW * ow
    place = place[:, None] + ((g * COL + col) * oc)[None, :]
    tl.store(o + place, acc.to(o.dtype.element_ty), mask=there[:, None] & (col < COL)[None, :])


@triton.jit
def _weigh(
    o, x, y, M, ROW, K, C, OD, OH, OW, ID, IH, IW, KH, KW, td, th, tw, pd, ph, pw, dd, dh, dw,
    xn, xc, xd, xh, xw, yn, yc, yd, yh, yw, part, groups, DIMS: tl.constexpr,
    PRECISION: tl.constexpr, DOT: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    # Grid: (blocks of output channels, blocks of taps and channels, groups times parts). Positions
    # are the terms; each part adds up its own.
    g = tl.program_id(2) % groups
    p = tl.program_id(2) // groups
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    tap = k // C
    kw = tap % KW * dw
    kh = tap // KW % KH * dh
    kd = tap // KW // KH * dd
    across = x + ((g * C + k % C) * xc + kd * xd + kh * xh + kw * xw)
    lines = y + (g * ROW + row).to(tl.int64) * yc
    end = tl.minimum((p + 1) * part, M)
    acc = tl.zeros((BM, BN), WIDE)
    for start in range(p * part, end, BK):
        m = start + tl.arange(0, BK)
        there = m < end
        w_ = m % OW
        h_ = m // OW % OH
        d_ = m // OW // OH % OD
        n = (m // OW // OH // OD).to(tl.int64)
        a = tl.load(
            lines[:, None] + (n * yn + d_ * yd + h_ * yh + w_ * yw)[None, :],
            mask=(row < ROW)[:, None] & there[None, :], other=0.0,
        )  # fmt: skip
        w_ = w_ * tw - pw
        h_ = h_ * th - ph
        d_ = d_ * td - pd
        good = there[:, None] & (k < K)[None, :] & _there(w_[:, None] + kw[None, :], IW)
        if DIMS > 1:
            good = good & _there(h_[:, None] + kh[None, :], IH)
        if DIMS > 2:
            good = good & _there(d_[:, None] + kd[None, :], ID)
        down = n * xn + d_ * xd + h_ * xh + w_ * xw
        b = tl.load(across[None, :] + down[:, None], mask=good, other=0.0)
        acc = _product(a, b, acc, PRECISION, DOT)

    place = ((p * groups + g) * ROW + row).to(tl.int64)[:, None] * K + k[None, :]
    tl.store(o + place, acc, mask=(row < ROW)[:, None] & (k < K)[None, :])


def _three(values: Any, fill: int) -> tuple[int, ...]:
    """Three dimensions, those that are not there in front."""
    return (fill,) * (3 - len(values)) + tuple(values)


def _fits(positions: int, groups: int, *shapes: Any) -> bool:
    """Whether kernels can do it: only the distance between samples may need 64 bits, and the third
    dimension of a grid ends. What is larger goes to the CPU.
    """
    return positions < 2**30 and groups < 65536 and all(math.prod(s[1:]) < 2**31 for s in shapes)


def _near(x: Any) -> Any:
    """What brings the elements of a sample together if they lie further apart than 32 bits tell."""
    inside = zip(x.strides[1:], x.shape[1:], strict=True)
    return (lambda v: v) if sum(abs(s) * (n - 1) for s, n in inside) < 2**31 else dense


def _steps(spec: Any) -> tuple[int, ...]:
    """Strides of (N, C, depth, height, width)."""
    return (*spec.strides[:2], *_three(spec.strides[2:], 0))


def _tile(dtype: dt.dtype, rows: int, columns: int, terms: int) -> dict[str, Any]:

    half = dtype in dt.HALF
    double = dtype is dt.float64
    bm, bn, bk = (16, 16, 16) if double else (BM, BN, BK if half else 16)
    return {
        "PRECISION": "tf32" if half or precision.matmul.allow_tf32 else "ieee", "DOT": not double,
        "WIDE": wide(dtype), "BM": max(16, min(bm, power(rows))),
        "BN": max(16, min(bn, power(columns))), "BK": max(16, min(bk, power(terms))),
    }  # fmt: skip


def _laid(weight: Any, groups: int, transposed: bool) -> tuple[Spec, Spec]:
    """(the weight seen as (groups, columns, taps, terms), the same with these dense)."""
    n, per, *kernel = weight.shape
    first, second, *taps = weight.strides
    outer = n // groups
    if transposed:
        shape, steps = (groups, per, *kernel, outer), (outer * first, second, *taps, first)
    else:
        shape, steps = (groups, outer, *kernel, per), (outer * first, first, *taps, second)
    seen = weight.spec.like(shape, strides=steps)
    return seen, weight.spec.like(shape)


def _forward(
    x: Any, weight: Any, bias: Any, size: Any, stride: Any, padding: Any, dilation: Any,
    groups: int, transposed: bool,
) -> Any:  # fmt: skip
    if any(s.dtype is not x.dtype for s in (weight, *(() if bias is None else (bias,)))):
        return None
    if not x.numel or not weight.numel or 0 in size:
        return None
    columns = weight.shape[1] if transposed else weight.shape[0] // groups
    channels = x.shape[1] // groups
    kernel = _three(weight.shape[2:], 1)
    rows, terms = x.shape[0] * math.prod(size), channels * math.prod(kernel)
    fixed = _tile(x.dtype, rows, columns, terms)
    fixed |= {"DIMS": x.ndim - 2, "TRANSPOSED": transposed, "BIAS": bias is not None}
    kind = pointer(x.dtype)
    if not _fits(rows, groups, x.shape, (1, groups * columns, *size)):
        return None
    steps = ["i64", *["i32"] * 4] * 2
    warps = 8 if fixed["BM"] * fixed["BN"] >= 8192 else 4
    program = shared(_convolve, [kind] * 4 + ["i32"] * 21 + steps, fixed, warps=warps)
    seen, laid = _laid(weight, groups, transposed)
    numbers = (
        rows, columns, terms, channels, *_three(size, 1), *_three(x.shape[2:], 1), *kernel[1:],
        *_three(stride, 1), *_three(padding, 0), *_three(dilation, 1),
    )  # fmt: skip
    grid = (-(-rows // fixed["BM"]), -(-columns // fixed["BN"]), groups)
    near = _near(x)

    def run(outs: list[View], x: View, weight: View, bias: Any = None) -> None:
        w = empty(laid)
        copy_view(w, View(weight.ptr, seen, weight.storage))
        x, bias = near(x), w if bias is None else dense(bias)
        steps = (*_steps(x.spec), *_steps(outs[0].spec))
        program(grid, outs[0].ptr, x.ptr, w.ptr, bias.ptr, *numbers, *steps)

    return run


@cuda("_convolution", accepts=floats)
def convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    size = [
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, k, s, p, d in zip(
            x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True
        )
    ]
    return _forward(x, weight, bias, size, stride, padding, dilation, groups, False)


@cuda("_convolution_transpose", accepts=floats)
def convolution_transpose(
    x: Any, weight: Any, bias: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    return _forward(x, weight, bias, size, stride, padding, dilation, groups, True)


@cuda("_convolution_weight", accepts=floats)
def convolution_weight(
    x: Any, grad: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    if grad.dtype is not x.dtype or not x.numel or not grad.numel:
        return None
    size, taps = _three(grad.shape[2:], 1), _three(kernel, 1)
    row, channels = grad.shape[1] // groups, x.shape[1] // groups
    positions, columns = x.shape[0] * math.prod(size), channels * math.prod(taps)
    fixed = {"DIMS": x.ndim - 2, **_tile(x.dtype, row, columns, positions)}
    blocks = -(-row // fixed["BM"]) * -(-columns // fixed["BN"])
    parts = max(1, min(4 * here_count() // (blocks * groups), positions // (8 * fixed["BK"]), 64))
    part = -(-positions // parts)
    parts = -(-positions // part)
    if not _fits(positions, groups * parts, x.shape, grad.shape):
        return None
    total = dt.float64 if x.dtype is dt.float64 else dt.float32
    program = shared(
        _weigh, [pointer(total)] + [pointer(x.dtype)] * 2 + ["i32"] * 21
        + ["i64", *["i32"] * 4] * 2 + ["i32", "i32"], fixed,
        warps=8 if fixed["BM"] * fixed["BN"] >= 8192 else 4,
    )  # fmt: skip
    numbers = (
        positions, row, columns, channels, *size, *_three(x.shape[2:], 1), *taps[1:],
        *_three(stride, 1), *_three(padding, 0), *_three(dilation, 1),
    )  # fmt: skip
    grid = (-(-row // fixed["BM"]), -(-columns // fixed["BN"]), groups * parts)
    near, near_grad = _near(x), _near(grad)
    device = x.spec.device
    made = Spec(Layout((parts, groups * row * columns)), total, device)
    flat = Spec(Layout((groups * row * columns,)), total, device)
    join = _row(_Seen(made), (0,), total, "sum") if parts > 1 else None
    # Terms come out as (channel out, tap, channel in); weights are (out, in, tap).
    shape = (groups * row, channels, *kernel)
    inner = [channels * math.prod(kernel[d + 1 :]) for d in range(len(kernel))]
    turned = Spec(Layout(shape, (columns, 1, *inner)), total, device)

    def run(outs: list[View], x: View, grad: View) -> None:
        sums, x, grad = empty(made), near(x), near_grad(grad)
        steps = (*_steps(x.spec), *_steps(grad.spec))
        program(grid, sums.ptr, x.ptr, grad.ptr, *numbers, *steps, part, groups)
        if join is not None:
            joined = empty(flat)
            join([joined], sums)
            sums = joined
        copy_view(outs[0], View(sums.ptr, turned, sums.storage))

    return run


class _Seen:
    """A spec where a row of the kernel table expects an argument."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.shape, self.dtype, self.ndim = spec, spec.shape, spec.dtype, spec.ndim
        self.strides, self.numel = spec.strides, spec.numel
