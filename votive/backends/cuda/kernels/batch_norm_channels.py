"""Channels of batch_norm one by one: a program normalises a channel of few values; and running statistics."""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..device import math as m
from ..programs.copy import copy_view
from ..programs.index_space import cached_by_spec
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.program import Program, pointer
from ..programs.tiles import merge_neighbours
from ..programs.types import wide
from ..runtime.views import View

FEW = 8192  # values of a channel that a program holds
SMALL = 1 << 17  # values in all: beyond, channels that do not lie in lines would be read again and again
LINE = 32  # values side by side that are a line


@triton.jit
def _whole_channel(
    o, means, variances, x, weight, bias, count, inner, eps, on, oc, oi, xn, xc, xi,
    WEIGHT: tl.constexpr, BIAS: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0).to(count.dtype)
    j = tl.arange(0, BLOCK).to(count.dtype)
    there = j < count
    n, i = j // inner, j % inner
    v = tl.load(x + (n * xn + c * xc + i * xi), mask=there, other=0).to(WIDE)

    many = count.to(WIDE)
    mean = tl.sum(v, 0) / many
    away = tl.where(there, v - mean, 0.0)
    variance = tl.sum(away * away, 0) / many
    y = away * m.f_div(tl.full((), 1.0, WIDE), m.f_sqrt(variance + eps.to(WIDE)))
    if WEIGHT:
        y = y * tl.load(weight + c).to(WIDE)
    if BIAS:
        y = y + tl.load(bias + c).to(WIDE)

    tl.store(o + (n * on + c * oc + i * oi), y.to(o.dtype.element_ty), mask=there)
    tl.store(means + c, mean.to(means.dtype.element_ty))
    tl.store(variances + c, variance.to(variances.dtype.element_ty))


def _as_lines(spec: Spec) -> tuple[int, int, int] | None:
    """(stride of samples, of channels, of values) where the dimensions behind channels are one."""
    dims = [d for d in range(2, spec.ndim) if spec.shape[d] != 1]
    sizes, strides, _ = merge_neighbours(spec.shape, dims, [spec.strides])
    if len(sizes) > 1:
        return None
    return spec.strides[0], spec.strides[1], strides[0][0] if sizes else 0


def few_of_channel(x: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Any:
    """`find(spec of the result)`: run(outs, x, weight, bias) of channels with few values each, or None."""
    count, inner = x.numel // x.shape[1], math.prod(x.shape[2:])
    lines = _as_lines(x.spec)
    near = lines is not None and lines[2] == 1 and inner >= LINE
    vectors = [p for p in (weight, bias) if p is not None]
    if lines is None or count > FEW or x.numel > (SMALL * 16 if near else SMALL):
        return None
    if any(p.strides[0] != 1 and p.shape[0] > 1 for p in vectors):
        return None
    stat = dt.float64 if x.dtype is dt.float64 else dt.float32
    real = "fp64" if x.dtype is dt.float64 else "fp32"

    def build(out: Spec) -> Any:
        to = _as_lines(out)
        if to is None:
            return None
        numbers = (*to, *lines)
        block = next_power_of_two(count)
        constants = {"WEIGHT": weight is not None, "BIAS": bias is not None, "WIDE": wide(x.dtype), "BLOCK": block}
        kinds = [pointer(x.dtype), pointer(stat), pointer(stat), pointer(x.dtype)]
        kinds += [pointer((p or x).dtype) for p in (weight, bias)]
        warps = 1 if block <= 256 else 4 if block <= 2048 else 8
        types = [*kinds, "i32", "i32", real, *["i32"] * 6]
        program = Program(_whole_channel, types, constants, warps=warps, enable_fp_fusion=False)
        grid = (x.shape[1],)

        def run(outs: list[View], x: View, weight: View | None, bias: View | None) -> None:
            given = (outs[0].ptr, outs[1].ptr, outs[2].ptr, x.ptr, (weight or x).ptr, (bias or x).ptr)
            program(grid, *given, count, inner, eps, *numbers)

        return run

    return cached_by_spec(build)


BLOCK = 256


@triton.jit
def _moved(
    running, new, channels, rows, kept, share, count, VARIANCE: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """Each row moves the statistic for itself; every step rounds to its type."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = c < channels
    kind = running.dtype.element_ty
    old = tl.load(running + c, mask=there, other=0.0).to(WIDE)
    old = (old * kept.to(WIDE)).to(kind).to(WIDE)
    part = share.to(kind).to(WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    at = new + c
    for _ in range(rows):
        v = tl.load(at, mask=there, other=0.0)
        at += channels
        if VARIANCE:  # of a sample: divided by one less
            v = (v.to(WIDE) * count.to(WIDE)).to(new.dtype.element_ty).to(kind).to(WIDE)
            v = m.f_div(v, (count - 1).to(WIDE) + v * 0)
        v = v.to(kind).to(WIDE)
        total += (old + v * part).to(kind).to(WIDE)
    y = m.f_div(total, rows.to(WIDE) + total * 0)
    tl.store(running + c, y.to(kind), mask=there)


@triton.jit
def _move(
    mean, means, var, variances, channels, rows, kept, share, count,
    MEAN: tl.constexpr, VAR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Both statistics. Grid: channels, statistics."""
    if tl.program_id(1) == 0:
        _moved(mean, means, channels, rows, kept, share, count, False, MEAN, BLOCK)
    else:
        _moved(var, variances, channels, rows, kept, share, count, True, VAR, BLOCK)


def mover(mean: Slot, var: Slot, means: Slot, variances: Slot, count: int) -> Any:
    """run(outs, mean, var, means, variances, momentum): both statistics moved in place."""
    channels = mean.numel
    rows = means.numel // channels if channels else 0
    if not rows:
        return lambda outs, *values: None
    block = min(BLOCK, max(next_power_of_two(channels), 16))
    constants = {"MEAN": wide(mean.dtype), "VAR": wide(var.dtype), "BLOCK": block}
    types = [pointer(v.dtype) for v in (mean, means, var, variances)] + ["i32", "i32", "fp64", "fp64", "fp64"]
    program = Program(_move, types, constants, enable_fp_fusion=False)
    grid, dense = (-(-channels // block), 2), mean.contiguous and var.contiguous

    def run(outs: list[View], mean: View, var: View, means: View, variances: View, momentum: Any) -> None:
        to = [mean, var] if dense else [contiguous(mean), contiguous(var)]
        new = [contiguous(means).ptr, contiguous(variances).ptr]
        share = float(momentum)
        program(grid, to[0].ptr, new[0], to[1].ptr, new[1], channels, rows, 1 - share, share, float(count))
        for made, given in zip(to, (mean, var), strict=True):
            if made is not given:
                copy_view(given, made)

    return run
