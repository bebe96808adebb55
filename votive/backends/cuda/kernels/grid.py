"""Sampling at positions, its gradients, and grids of positions. A program finds the positions of a
block of places and goes through channels with them.
"""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl

from ....core import determinism
from ....core import dtype as dt
from ...common.grid import MODES, PADDINGS
from ...common.slot import Slot
from ..device import math as m
from ..programs.copy import copy_view
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.program import Program, pointer
from ..programs.types import Run, floats
from ..rows import cuda
from ..runtime.views import View, empty, zero
from .index import reach

BLOCK = 256  # places of a program
SMALL = 128  # with sixteen taps, whose weights fill the registers
ENOUGH = 1024  # programs that keep a GPU busy: channels are divided until there are as many
BILINEAR, NEAREST, BICUBIC = (tl.constexpr(k) for k in range(3))
ZEROS, BORDER, REFLECTION = (tl.constexpr(k) for k in range(3))


@triton.jit
def _bring_back(x, size, PAD: tl.constexpr, ALIGN: tl.constexpr):
    """A position as the padding sees it, and how much it moves with the given one."""
    slope = tl.zeros_like(x) + 1
    top = (size - 1).to(x.dtype)
    if PAD == REFLECTION:
        low = 0.0 if ALIGN else -0.5
        span = tl.where(size > 1, top, 1.0).to(x.dtype) if ALIGN else size.to(x.dtype)
        away = tl.where(x < low, low - x, x - low)
        turns = m.f_floor(m.f_div(away, span))
        rest = away - turns * span
        odd = turns - 2 * m.f_floor(turns * 0.5) > 0
        slope = tl.where((x < low) != odd, -slope, slope)
        x = tl.where(odd, span - rest, rest) + low
    if PAD != ZEROS:
        # The ends count as outside, and NaN as the first element.
        slope = tl.where((x > 0) & (x < top), slope, 0.0)
        x = tl.where(x > 0, tl.where(x < top, x, top), 0.0)
    return x, slope


@triton.jit
def _near(d):
    """Keys' kernel with a = -3/4 at a distance of 0..1, and its derivative."""
    return (1.25 * d - 2.25) * d * d + 1, (3.75 * d - 4.5) * d


@triton.jit
def _far(d):
    """The same at a distance of 1..2."""
    return ((-0.75 * d + 3.75) * d - 6) * d + 3, (-2.25 * d + 7.5) * d - 6


@triton.jit
def _tap(at, size, t: tl.constexpr, MODE: tl.constexpr, PAD: tl.constexpr, ALIGN: tl.constexpr):
    """(element, whether it exists, weight, its derivative) of tap t along one dimension."""
    scale = (size - 1).to(at.dtype) * 0.5 if ALIGN else size.to(at.dtype) * 0.5
    shift = 0.0 if ALIGN else -0.5
    x = tl.fma(at + 1, scale + tl.zeros_like(at), shift + tl.zeros_like(at))  # rounded once
    by = scale + tl.zeros_like(at)
    if MODE != BICUBIC:
        x, slope = _bring_back(x, size, PAD, ALIGN)
        by = slope * scale
    one = tl.zeros_like(at) + 1
    if MODE == NEAREST:
        e, w, by = m.f_round(x), one, by * 0
    else:
        low = m.f_floor(x)
        part = x - low
        if MODE == BILINEAR:
            e = low + t
            w = part if t == 1 else 1 - part
            by = by if t == 1 else -by
        else:
            e = low + (t - 1)
            if t == 0:
                w, slope = _far(part + 1)
            elif t == 1:
                w, slope = _near(part)
            elif t == 2:
                w, slope = _near(1 - part)
                slope = -slope
            else:
                w, slope = _far(2 - part)
                slope = -slope
            by = by * slope
            e, _ = _bring_back(e, size, PAD, ALIGN)  # its taps are brought back one by one
    top = (size - 1).to(at.dtype)
    inside = (e >= 0) & (e <= top)
    place = tl.where(inside, e, 0.0).to(tl.int32)
    return place, inside, w, by


@triton.jit
def _coordinate(grid, at, step, inside, WIDE: tl.constexpr):
    return tl.load(grid + at + step, mask=inside, other=0).to(WIDE)


@triton.jit
def _positions(
    grid, places, share, shares, GH, GW, gn, gd, gh, gw, gl, DEEP: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """(sample, first channel, places of a block, which are there, their coordinates) of a program."""
    pid = tl.program_id(0)
    blocks = tl.cdiv(places, BLOCK)
    n, first = pid // (blocks * shares), pid // blocks % shares * share
    n = n.to(gn.dtype)
    p = pid % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = p < places
    at = n * gn + p // GW // GH * gd + p // GW % GH * gh + p % GW * gw
    cx = _coordinate(grid, at, 0, inside, WIDE)
    cy = _coordinate(grid, at, gl, inside, WIDE)
    cz = _coordinate(grid, at, 2 * gl, inside, WIDE) if DEEP else cx
    return n, first, p, inside, cx, cy, cz


@triton.jit
def _sample(
    o, x, grid, places, channels, share, shares, D, H, W, GH, GW,
    xn, xc, xd, xh, xw, gn, gd, gh, gw, gl, DEEP: tl.constexpr, T: tl.constexpr, MODE: tl.constexpr,
    PAD: tl.constexpr, ALIGN: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n, first, p, inside, cx, cy, cz = _positions(
        grid, places, share, shares, GH, GW, gn, gd, gh, gw, gl, DEEP, WIDE, BLOCK
    )

    for c in range(first, tl.minimum(first + share, channels)):
        y = tl.zeros((BLOCK,), WIDE)
        for a in tl.static_range(T if DEEP else 1):
            for b in tl.static_range(T):
                for e in tl.static_range(T):
                    py, iy, wy, _y = _tap(cy, H, b, MODE, PAD, ALIGN)
                    px, ix, wx, _x = _tap(cx, W, e, MODE, PAD, ALIGN)
                    spot = n * xn + c * xc + py * xh + px * xw
                    good, weight = inside & iy & ix, wy * wx
                    if DEEP:
                        pz, iz, wz, _z = _tap(cz, D, a, MODE, PAD, ALIGN)
                        spot, good, weight = spot + pz * xd, good & iz, weight * wz
                    v = tl.load(x + spot, mask=good, other=0).to(WIDE)
                    y += v if MODE == NEAREST else v * weight
        to = (n * channels + c) * places + p
        tl.store(o + to, y.to(o.dtype.element_ty), mask=inside)


@triton.jit
def _backward(
    back, by, g, x, grid, places, channels, share, shares, D, H, W, GH, GW,
    xn, xc, xd, xh, xw, gn, gd, gh, gw, gl, DEEP: tl.constexpr, T: tl.constexpr, MODE: tl.constexpr,
    PAD: tl.constexpr, ALIGN: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
    BY_INPUT: tl.constexpr, BY_GRID: tl.constexpr,
):  # fmt: skip
    n, first, p, inside, cx, cy, cz = _positions(
        grid, places, share, shares, GH, GW, gn, gd, gh, gw, gl, DEEP, WIDE, BLOCK
    )

    sx = tl.zeros((BLOCK,), WIDE)
    sy = tl.zeros((BLOCK,), WIDE)
    sz = tl.zeros((BLOCK,), WIDE)
    for c in range(first, tl.minimum(first + share, channels)):
        plane = n * channels + c
        v = tl.load(g + plane * places + p, mask=inside, other=0).to(WIDE)
        for a in tl.static_range(T if DEEP else 1):
            for b in tl.static_range(T):
                for e in tl.static_range(T):
                    py, iy, wy, dy = _tap(cy, H, b, MODE, PAD, ALIGN)
                    px, ix, wx, dx = _tap(cx, W, e, MODE, PAD, ALIGN)
                    good, flat = inside & iy & ix, py * W + px
                    spot = n * xn + c * xc + py * xh + px * xw
                    if DEEP:
                        pz, iz, wz, dz = _tap(cz, D, a, MODE, PAD, ALIGN)
                        good, flat, spot = good & iz, flat + pz * H * W, spot + pz * xd
                        dz, dy, dx = dz * wy * wx, dy * wz * wx, dx * wz * wy
                        weight = wz * wy * wx
                    else:
                        dz, dy, dx = dx * 0, dy * wx, dx * wy
                        weight = wy * wx
                    if BY_INPUT:
                        part = v if MODE == NEAREST else v * weight
                        to = plane * D * H * W + flat
                        tl.atomic_add(back + to, part, mask=good, sem="relaxed")
                    if BY_GRID and MODE != NEAREST:
                        met = v * tl.load(x + spot, mask=good, other=0).to(WIDE)
                        sx, sy, sz = sx + met * dx, sy + met * dy, sz + met * dz

    if BY_GRID:
        to = (n * places + p) * (3 if DEEP else 2)
        tl.store(by + to, sx.to(by.dtype.element_ty), mask=inside)
        tl.store(by + to + 1, sy.to(by.dtype.element_ty), mask=inside)
        if DEEP:
            tl.store(by + to + 2, sz.to(by.dtype.element_ty), mask=inside)


class _Plan:
    """The numbers and constants of a way to sample, and its grid."""

    def __init__(self, x: Slot, grid: Slot, mode: str, padding: str, align: bool) -> None:
        deep = x.ndim == 5
        self.places, self.channels = math.prod(grid.shape[1:-1]), x.shape[1]
        block = SMALL if mode == "bicubic" else BLOCK
        self.blocks = x.shape[0] * -(-self.places // block)
        pad = lambda s, fill: s if deep else (fill, *s)
        self.sizes = (*pad(x.shape[2:], 1), *grid.shape[-3:-1])
        steps = (*x.strides[:2], *pad(x.strides[2:], 0), grid.strides[0])
        self.steps = (*steps, *pad(grid.strides[1:-1], 0), grid.strides[-1])
        most = max(reach(x), reach(grid), x.numel, x.shape[0] * x.shape[1] * self.places)
        self.number = "i64" if most >= 2**31 - 2**20 else "i32"
        self.constants = {
            "DEEP": deep,
            "T": {"bilinear": 2, "nearest": 1, "bicubic": 4}[mode],
            "MODE": MODES.index(mode),
            "PAD": PADDINGS.index(padding),
            "ALIGN": align,
            "WIDE": tl.float64 if x.dtype is dt.float64 else tl.float32,
            "BLOCK": block,
        }

    def shared(self, shares: int) -> tuple[tuple[int], tuple[int, ...]]:
        """The grid, and the numbers of the kernel, when channels are divided into shares."""
        share = -(-self.channels // shares)
        shares = -(-self.channels // share)
        numbers = (self.places, self.channels, share, shares, *self.sizes, *self.steps)
        return (self.blocks * shares,), numbers

    def enough(self) -> int:
        return max(min(self.channels, ENOUGH // max(self.blocks, 1)), 1)


@cuda("_grid_sample", accepts=floats)
def grid_sample(x: Slot, grid: Slot, mode: str, padding: str, align: bool) -> Run:
    if not x.numel or not grid.numel:
        return lambda outs, x, grid: None
    plan = _Plan(x, grid, mode, padding, align)
    launch, numbers = plan.shared(plan.enough())
    kinds = [pointer(x.dtype)] * 2 + [pointer(grid.dtype)] + [plan.number] * len(numbers)
    program = Program(_sample, kinds, plan.constants)

    def run(outs: list[View], x: View, grid: View) -> None:
        program(launch, outs[0].ptr, x.ptr, grid.ptr, *numbers)

    return run


@cuda("_grid_sample_backward", accepts=floats)
def grid_sample_backward(
    g: Slot, x: Slot, grid: Slot, mode: str, padding: str, align: bool, by_input: bool, by_grid: bool
) -> Run:
    if not x.numel or not grid.numel:
        return lambda outs, *values: list(map(zero, outs))
    plan = _Plan(x, grid, mode, padding, align)
    # Sums over channels belong to one program.
    launch, numbers = plan.shared(1 if by_grid else plan.enough())
    total = dt.float64 if x.dtype is dt.float64 else dt.float32
    kinds = [pointer(total), pointer(grid.dtype), pointer(g.dtype), pointer(x.dtype)]
    kinds += [pointer(grid.dtype), *[plan.number] * len(numbers)]
    program = Program(_backward, kinds, {**plan.constants, "BY_INPUT": by_input, "BY_GRID": by_grid})

    def run(outs: list[View], g: View, x: View, grid: View) -> None:
        if by_input:
            determinism.alert("grid_sample_backward")
        back, g = outs[0], contiguous(g)
        if by_input:
            if total is not x.spec.dtype:
                back = empty(x.spec.like(x.spec.shape, total))
            zero(back)
        program(launch, back.ptr, outs[1].ptr, g.ptr, x.ptr, grid.ptr, *numbers)
        if by_input and back is not outs[0]:
            copy_view(outs[0], back)

    return run


@triton.jit
def _centre(i, n, ALIGN: tl.constexpr, WIDE: tl.constexpr):
    """Coordinates in -1..1: the ends are the outer centres (align) or the outer edges."""
    span = tl.maximum(n - 1, 1) if ALIGN else n
    return m.f_div((2 * i + 1 - n).to(WIDE), span.to(WIDE) + tl.zeros_like(i).to(WIDE))


@triton.jit
def _base(p, H, W, D, e, ALIGN: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    """Coordinate e of places, the innermost first; behind the last comes 1."""
    i = tl.where(e == 0, p % W, tl.where(e == 1, p // W % H, p // W // H))
    size = tl.where(e == 0, W, tl.where(e == 1, H, D))
    return tl.where(e == N, 1.0, _centre(i, size, ALIGN, WIDE))


@triton.jit
def _affine(
    o, theta, places, D, H, W, tn, tr, tc, N: tl.constexpr, ALIGN: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    blocks = tl.cdiv(places, BLOCK)
    n = (tl.program_id(0) // blocks).to(places.dtype)
    p = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    for d in tl.static_range(N):
        y = tl.zeros((BLOCK,), WIDE)
        for e in tl.static_range(N + 1):
            t = tl.load(theta + n * tn + d * tr + e * tc).to(WIDE)
            y += t * _base(p, H, W, D, e, ALIGN, WIDE, N)
        to = o + (n * places + p) * N + d
        tl.store(to, y.to(o.dtype.element_ty), mask=p < places)


@triton.jit
def _affine_back(o, g, places, D, H, W, N: tl.constexpr, ALIGN: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """One number of theta per program: a sum over all places."""
    pid = tl.program_id(0)
    n, d, e = (pid // (N * (N + 1))).to(places.dtype), pid // (N + 1) % N, pid % (N + 1)
    acc = tl.zeros((BLOCK,), WIDE)
    for start in range(0, places, BLOCK):
        p = start + tl.arange(0, BLOCK)
        v = tl.load(g + (n * places + p) * N + d, mask=p < places, other=0).to(WIDE)
        acc += v * _base(p, H, W, D, e, ALIGN, WIDE, N)
    tl.store(o + pid, tl.sum(acc, 0).to(o.dtype.element_ty))


def _affine_constants(dtype: dt.dtype, size: tuple[int, ...], align: bool) -> tuple[Any, ...]:
    n, places = len(size) - 2, math.prod(size[2:])
    wide = tl.float64 if dtype is dt.float64 else tl.float32
    constants = {"N": n, "ALIGN": align, "WIDE": wide, "BLOCK": min(1024, next_power_of_two(places))}
    number = "i64" if size[0] * places * n >= 2**31 - 2**20 else "i32"
    return n, (places, *(size[2:] if n == 3 else (1, *size[2:]))), constants, number


@cuda("_affine_grid", accepts=floats)
def affine_grid(theta: Slot, size: tuple[int, ...], align: bool) -> Run:
    _, numbers, constants, number = _affine_constants(theta.dtype, size, align)
    if reach(theta) >= 2**31:
        number = "i64"
    numbers = (*numbers, *theta.strides)
    kinds = [pointer(theta.dtype)] * 2 + [number] * len(numbers)
    program = Program(_affine, kinds, constants)
    launch = (size[0] * -(-numbers[0] // constants["BLOCK"]),)
    return lambda outs, theta: program(launch, outs[0].ptr, theta.ptr, *numbers)


@cuda("_affine_grid_transpose", accepts=floats)
def affine_grid_transpose(g: Slot, size: tuple[int, ...], align: bool) -> Run:
    n, numbers, constants, number = _affine_constants(g.dtype, size, align)
    program = Program(_affine_back, [pointer(g.dtype)] * 2 + [number] * len(numbers), constants)
    launch = (size[0] * n * (n + 1),)
    return lambda outs, g: program(launch, outs[0].ptr, contiguous(g).ptr, *numbers)
