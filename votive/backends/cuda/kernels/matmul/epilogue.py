"""Activations behind products: as functions for kernels, and as passes over memory that also sum
columns. Knows matrices in dense rows.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ...device import math as m
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE, Program
from ...runtime import here_count
from ...runtime.views import empty

KINDS = {"": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
FLAT = 1024  # elements that a program of a flat pass takes
# The tile of a pass that sums columns, how far ahead it loads, and how many of its programs there
# are for each processor.
ROWS, COLUMNS, WARPS, STAGES, WAVES = 16, 256, 4, 3, 4
_SQRT_HALF = tl.constexpr(0.7071067811865476)
_SQRT_2_PI = tl.constexpr(0.7978845608028654)  # sqrt(2 / pi)
_SQRT_1_2PI = tl.constexpr(0.3989422804014327)  # 1 / sqrt(2 pi)


@triton.jit
def _sigmoid(x, FAST: tl.constexpr):
    if FAST:
        y = tl.sigmoid(x)
    else:
        y = m.f_sigmoid(x)
    return y


@triton.jit
def _erf(x, FAST: tl.constexpr):
    if FAST:
        y = m.fast_erf(x)
    else:
        y = m.f_erf(x)
    return y


@triton.jit
def _tanh(x, FAST: tl.constexpr):
    if FAST:
        y = m.fast_tanh(x)
    else:
        y = m.f_tanh(x)
    return y


@triton.jit
def activate(x, KIND: tl.constexpr, FAST: tl.constexpr):
    """The activation of what a product gave. FAST: the result becomes a half type."""
    if KIND == 1:
        x = tl.where(x < 0, 0, x)
    elif KIND == 2:
        x = 0.5 * x * (1 + _erf(x * _SQRT_HALF, FAST))
    elif KIND == 3:
        x = 0.5 * x * (1 + _tanh((x + 0.044715 * (x * x * x)) * _SQRT_2_PI, FAST))
    elif KIND == 4:
        x = x * _sigmoid(x, FAST)
    return x


@triton.jit
def slope(x, KIND: tl.constexpr, FAST: tl.constexpr):
    """Its derivative; for a ReLU `x` may be what came out as well as what went in."""
    if KIND == 1:
        x = tl.where(x > 0, 1.0, 0.0).to(x.dtype)
    elif KIND == 2:
        if FAST:
            e = tl.exp(-0.5 * x * x)
        else:
            e = m.f_exp(-0.5 * x * x)
        x = 0.5 * (1 + _erf(x * _SQRT_HALF, FAST)) + x * _SQRT_1_2PI * e
    elif KIND == 3:
        t = _tanh((x + 0.044715 * (x * x * x)) * _SQRT_2_PI, FAST)
        inner = (1 + 0.134145 * x * x) * _SQRT_2_PI
        x = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner
    elif KIND == 4:
        s = _sigmoid(x, FAST)
        x = s * (1 + x * (1 - s))
    return x


@triton.jit
def _activated(o, z, n, KIND: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(z + i, mask=inside, other=0.0).to(WIDE)
    y = activate(x, KIND, o.dtype.element_ty.primitive_bitwidth == 16)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=inside)


@triton.jit
def _back(
    dz,
    sums,
    g,
    z,
    rows,
    cols,
    each,
    KIND: tl.constexpr,
    WIDE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A program takes `each` rows of BN columns, and adds them up in registers as it goes."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)[None, :]
    part = tl.program_id(1)
    kind = dz.dtype.element_ty
    total = tl.zeros((BM, BN), WIDE)
    end = tl.minimum(part * each + each, rows)
    for start in tl.range(part * each, end, BM, num_stages=STAGES):
        i = (start + tl.arange(0, BM)[:, None]).to(tl.int64)
        inside = (i < end) & (j < cols)
        x = tl.load(z + i * cols + j, mask=inside, other=0.0).to(WIDE)
        y = tl.load(g + i * cols + j, mask=inside, other=0.0).to(WIDE)

        y = (y * slope(x, KIND, kind.primitive_bitwidth == 16)).to(kind)
        total += y.to(WIDE)

        tl.store(dz + i * cols + j, y, mask=inside)
    to = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(sums + part.to(tl.int64) * cols + to, tl.sum(total, 0), mask=to < cols)


@triton.jit
def _join(o, parts, count, cols, COUNT: tl.constexpr, BN: tl.constexpr):
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, COUNT)
    inside = (j < cols)[None, :] & (k < count)[:, None]
    x = tl.load(parts + k[:, None] * cols + j[None, :], mask=inside, other=0.0)
    tl.store(o + j, tl.sum(x, 0).to(o.dtype.element_ty), mask=j < cols)


def _wide(dtype: dt.dtype) -> Any:
    return tl.float64 if dtype is dt.float64 else tl.float32


class Activation:
    """`o = activation(z)` over n elements in a row; the two may be one place."""

    def __init__(self, dtype: dt.dtype, n: int, name: str) -> None:
        self.program = Program(
            _activated, ["*" + TYPE[dtype]] * 2 + ["i64"], {"KIND": KINDS[name], "WIDE": _wide(dtype), "BLOCK": FLAT}
        )
        self.program.divisible = (2,) if n % 16 == 0 else ()
        self.grid, self.n = (-(-n // FLAT),), n

    def __call__(self, o: int, z: int) -> None:
        self.program(self.grid, o, z, self.n)


class Slope:
    """`dz = g * slope(z)` and the sums of its columns, in one pass over (rows, cols)."""

    def __init__(self, like: Spec, rows: int, cols: int, name: str) -> None:
        dtype = like.dtype
        tiles = -(-cols // COLUMNS)
        lines = ROWS // 4 if dtype is dt.float64 else ROWS  # doubles fill registers
        each = max(ROWS, -(-rows * tiles // (WAVES * here_count())))
        each = -(-each // ROWS) * ROWS
        self.parts = -(-rows // each)
        wide = dt.float64 if dtype is dt.float64 else dt.float32
        kind, sums = "*" + TYPE[dtype], "*" + TYPE[wide]
        self.back = Program(
            _back,
            [kind, sums, kind, kind, "i32", "i32", "i32"],
            {"KIND": KINDS[name], "WIDE": _wide(dtype), "BM": lines, "BN": COLUMNS, "STAGES": STAGES},
            warps=WARPS,
        )
        self.back.divisible = (5, 6) if cols % 16 == 0 else (6,)
        self.join = Program(_join, [kind, sums, "i32", "i32"], {"COUNT": next_power_of_two(self.parts), "BN": 32})
        self.join.divisible = (3,) if cols % 16 == 0 else ()
        self.numbers, self.tiles = (rows, cols, each), tiles
        self.partial = Spec(Layout((self.parts, cols)), wide, like.device)

    def __call__(self, dz: int, sums: int, g: int, z: int) -> None:
        partial, cols = empty(self.partial), self.numbers[1]
        self.back((self.tiles, self.parts), dz, partial.ptr, g, z, *self.numbers)
        self.join((-(-cols // 32),), sums, partial.ptr, self.parts, cols)
