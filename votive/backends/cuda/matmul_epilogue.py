"""Activations behind products: as functions for kernels, and as passes over memory that also sum
columns. Knows matrices in dense rows.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from . import device_math as m
from .by_rows import power
from .data import empty
from .program import TYPE, Program
from .runtime import here_count

KINDS = {"": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
FLAT = 1024  # elements that a program of a flat pass takes
ROWS, COLUMNS = 16, 128  # the tile of a pass that sums columns
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
    dz, sums, g, z, rows, cols, share,
    KIND: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """A program takes `share` rows of BN columns, and adds them up as it goes."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    first = tl.program_id(1) * share
    total = tl.zeros((BN,), WIDE)
    for start in range(0, share, BM):
        i = first + start + tl.arange(0, BM)
        at = i[:, None].to(tl.int64) * cols + j[None, :]
        inside = (i[:, None] < rows) & (j[None, :] < cols)
        x = tl.load(z + at, mask=inside, other=0.0).to(WIDE)
        y = tl.load(g + at, mask=inside, other=0.0).to(WIDE)
        y = (y * slope(x, KIND, dz.dtype.element_ty.primitive_bitwidth == 16)).to(
            dz.dtype.element_ty
        )
        tl.store(dz + at, y, mask=inside)
        total += tl.sum(y.to(WIDE), 0)
    tl.store(sums + tl.program_id(1) * cols + j, total, mask=j < cols)


@triton.jit
def _join(o, parts, cols, COUNT: tl.constexpr, BN: tl.constexpr):
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, COUNT)
    inside = (j < cols)[None, :] & (k >= 0)[:, None]
    x = tl.load(parts + k[:, None] * cols + j[None, :], mask=inside, other=0.0)
    tl.store(o + j, tl.sum(x, 0).to(o.dtype.element_ty), mask=j < cols)


def _wide(dtype: dt.dtype) -> Any:
    return tl.float64 if dtype is dt.float64 else tl.float32


class Activation:
    """`o = activation(z)` over n elements in a row; the two may be one place."""

    def __init__(self, dtype: dt.dtype, n: int, name: str) -> None:
        self.program = Program(
            _activated, ["*" + TYPE[dtype]] * 2 + ["i64"],
            {"KIND": KINDS[name], "WIDE": _wide(dtype), "BLOCK": FLAT},
        )  # fmt: skip
        self.program.divisible = (2,) if n % 16 == 0 else ()
        self.grid, self.n = (-(-n // FLAT),), n

    def __call__(self, o: int, z: int) -> None:
        self.program(self.grid, o, z, self.n)


class Slope:
    """`dz = g * slope(z)` and the sums of its columns, in one pass over (rows, cols)."""

    def __init__(self, like: Spec, rows: int, cols: int, name: str) -> None:
        dtype = like.dtype
        tiles = -(-cols // COLUMNS)
        # Enough programs for four on every processor, each with at least two tiles of rows.
        parts = power(max(1, min(4 * here_count() // tiles, rows // (2 * ROWS))))
        share = -(-rows // parts)
        share = -(-share // ROWS) * ROWS
        wide = dt.float64 if dtype is dt.float64 else dt.float32
        half = "*" + TYPE[dtype]
        self.back = Program(
            _back, [half, "*" + TYPE[wide], half, half, "i32", "i32", "i32"],
            {"KIND": KINDS[name], "WIDE": _wide(dtype), "BM": ROWS, "BN": COLUMNS},
        )  # fmt: skip
        self.back.divisible = (5, 6) if cols % 16 == 0 else (6,)
        self.join = Program(_join, [half, "*" + TYPE[wide], "i32"], {"COUNT": parts, "BN": COLUMNS})
        self.numbers, self.tiles, self.parts = (rows, cols, share), tiles, parts
        self.partial = Spec(Layout((parts, cols)), wide, like.device)

    def __call__(self, dz: int, sums: int, g: int, z: int) -> None:
        partial = empty(self.partial)
        self.back((self.tiles, self.parts), dz, partial.ptr, g, z, *self.numbers)
        self.join((self.tiles,), sums, partial.ptr, self.numbers[1])
