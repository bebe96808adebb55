"""The joined products of decoding: a norm and what is made of it, a product and what it is added
to. One row (few in float32): each program reads its weights before it waits for the row.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from ....common.slot import Slot
from ...device import math as m
from ...programs.dependent_launch import dependent, launch_dependents, wait_for_previous
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View
from .streamed import Normed, streamed, streams

FEW = 8  # rows of a batch
LONGEST = 8192  # features that a program normalises at once
WHOLE = 8192  # weights of a feature that a program holds at once
LARGE, MANY = 32768, 8  # from so many features on, a program makes several
ADDED = (2, 4)  # (features, warps) of a program of `_linear_add` over short rows
ONE = (dt.float32, *dt.HALF)


@triton.jit
def _normed_product(
    o,
    x,
    norm,
    w0,
    w1,
    w2,
    n0,
    n1,
    N,
    K,
    eps,
    M: tl.constexpr,
    GATED: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Every program norms the rows again: they are short, and reading them is free."""
    launch_dependents(DEPENDENT)
    first = tl.program_id(0) * BN
    j = first + tl.arange(0, BN)
    k = tl.arange(0, BK)
    inside = (j < N)[:, None] & (k < K)[None, :]
    # Sizes are multiples of the block, so a block never spans two weights.
    if GATED:
        at = j[:, None].to(tl.int64) * K + k[None, :]
        a = tl.load(w0 + at, mask=inside, other=0.0)
        b = tl.load(w1 + at, mask=inside, other=0.0)
    else:
        w = w0
        start = 0
        if first >= n0 + n1:
            w = w2
            start = n0 + n1
        elif first >= n0:
            w = w1
            start = n0
        a = tl.load(w + (j - start)[:, None].to(tl.int64) * K + k[None, :], mask=inside, other=0.0)
        b = a
    g = tl.load(norm + k, mask=k < K, other=0.0).to(tl.float32)
    wait_for_previous(DEPENDENT)
    kind = o.dtype.element_ty
    for r in tl.static_range(M):
        v = tl.load(x + r * K + k, mask=k < K, other=0.0).to(tl.float32)
        scale = 1.0 / m.f_sqrt(tl.sum(v * v, 0) / K + eps)
        # Rounded where single operators would round, so that both ways agree.
        v = (v * scale * g).to(kind).to(tl.float32)
        y = tl.sum(a.to(tl.float32) * v[None, :], 1)
        if GATED:
            y = y.to(kind).to(tl.float32)
            y = (y * tl.sigmoid(y)).to(kind).to(tl.float32)
            y = y * tl.sum(b.to(tl.float32) * v[None, :], 1).to(kind).to(tl.float32)
        tl.store(o + r * N + j, y.to(kind), mask=j < N)


@triton.jit
def _product_added(
    o,
    x,
    w,
    residual,
    N,
    K,
    M: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    WHOLE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    launch_dependents(DEPENDENT)
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    kind = o.dtype.element_ty
    k = tl.arange(0, BK)
    inside = (j < N)[:, None] & (k < K)[None, :]
    at = w + j[:, None].to(tl.int64) * K + k[None, :]
    a = tl.load(at, mask=inside, other=0.0)
    wait_for_previous(DEPENDENT)
    for r in tl.static_range(M):
        total = a.to(tl.float32) * tl.load(x + r * K + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
        if not WHOLE:
            for start in range(BK, K, BK):
                i = start + k
                inside = (j < N)[:, None] & (i < K)[None, :]
                b = tl.load(at + start, mask=inside, other=0.0).to(tl.float32)
                total += b * tl.load(x + r * K + i, mask=i < K, other=0.0).to(tl.float32)[None, :]
        y = tl.sum(total, 1).to(kind).to(tl.float32)
        y += tl.load(residual + r * N + j, mask=j < N, other=0.0).to(tl.float32)
        tl.store(o + r * N + j, y.to(kind), mask=j < N)


def same(*slots: Any) -> bool:
    """Whether all are dense and of one type that these kernels take."""
    return all(s is None or (s.contiguous and s.dtype is slots[0].dtype) for s in slots) and slots[0].dtype in ONE


@cuda("_norm_linear")
def norm_linear(x: Slot, norm: Slot, eps: float, weights: tuple[Slot, ...], gated: bool) -> Run:
    k = x.shape[-1]
    rows = x.numel // k if k else 0
    sizes = [w.shape[0] for w in weights]
    if same(x, norm, *weights) and streams(x.dtype, rows, k, sizes, gated) and len(weights) <= 3:
        normed = Normed(x.dtype, rows, k, eps, x.spec.device)
        product = streamed(x.dtype, rows, k, sizes, gated=gated)

        def stream(outs: list[View], x: View, norm: View, weights: list[View]) -> None:
            made = normed(x.ptr, norm.ptr)
            product(outs[0], made.ptr, [w.ptr for w in weights])

        return stream
    most = MANY if sizes[0] >= LARGE else 2
    bn = max(b for b in (1, 2, MANY) if b <= most and not any(s % b for s in sizes))
    if not same(x, norm, *weights) or not 1 <= rows <= FEW or k > LONGEST or len(weights) > 3:
        return None
    n = sizes[0] if gated else sum(sizes)
    bk = next_power_of_two(max(k, 16))
    kind = "*" + TYPE[x.dtype]
    program = dependent(
        _normed_product,
        [kind] * 6 + ["i32"] * 4 + ["fp32"],
        {"M": rows, "GATED": gated, "BN": bn, "BK": bk},
        warps=4 if bk <= 2048 else 8,
    )
    program.divisible = tuple(9 for _ in range(k % 16 == 0))
    numbers = (sizes[0], sizes[1] if len(sizes) > 1 else 0, n, k, float(eps))
    grid = (-(-n // bn),)

    def run(outs: list[View], x: View, norm: View, weights: list[View]) -> None:
        at = [w.ptr for w in weights]
        at += [at[0]] * (3 - len(at))
        program(grid, outs[0].ptr, x.ptr, norm.ptr, *at, *numbers)

    return run


@cuda("_linear_add")
def linear_add(x: Slot, weight: Slot, residual: Slot) -> Run:
    n, k = weight.shape
    rows = x.numel // k if k else 0
    if same(x, weight, residual) and streams(x.dtype, rows, k, [n]) and residual.numel == rows * n:
        added = streamed(x.dtype, rows, k, [n], add=True)
        return lambda outs, x, w, residual: added(outs[0], x.ptr, [w.ptr], residual.ptr)
    if not same(x, weight, residual) or not 1 <= rows <= FEW or residual.numel != rows * n:
        return None
    bk = min(next_power_of_two(max(k, 16)), WHOLE)
    bn, warps = ADDED if bk <= 2048 else (1, 8)
    kind = "*" + TYPE[x.dtype]
    program = dependent(
        _product_added, [kind] * 4 + ["i32", "i32"], {"M": rows, "BN": bn, "BK": bk, "WHOLE": bk >= k}, warps=warps
    )
    program.divisible = (5,) if k % 16 == 0 else ()
    grid = (-(-n // bn),)
    return lambda outs, x, w, residual: program(grid, outs[0].ptr, x.ptr, w.ptr, residual.ptr, n, k)
