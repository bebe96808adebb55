"""Triton's kernels for matrix products: a few rows at the speed of memory, any floating product
where the library has none, whole numbers. Knows sizes and strides, not tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE, Program
from .epilogue import KINDS, activate


@dataclass(frozen=True)
class Side:
    """One operand as a batch of matrices: sizes, strides, and the distances of the batch."""

    dtype: dt.dtype
    rows: int
    cols: int
    row: int
    col: int
    batch: int  # distance between matrices of the inner batch, 0 when they share one


@triton.jit
def _places(M, N, BM: tl.constexpr, BN: tl.constexpr):
    """Rows, columns and matrix of a program. Grid: (row tiles x column tiles x matrices,), since
    other dimensions of a grid end at 65,535.
    """
    at = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    i = at % down * BM + tl.arange(0, BM)
    j = at // down % across * BN + tl.arange(0, BN)
    return i, j, (at // down // across).to(tl.int64)


@triton.jit
def _product(
    o, a, b, bias, add, M, N, K, am, ak, ab, bk, bn, bb, om, on, ob, zm, zn, zb, alpha, beta,
    BIAS: tl.constexpr, ADD: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    i, j, z = _places(M, N, BM, BN)
    a += z * ab
    b += z * bb
    total = tl.zeros((BM, BN), WIDE)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        left = tl.load(
            a + i[:, None].to(tl.int64) * am + k[None, :] * ak, mask=(i[:, None] < M) & (k[None, :] < K), other=0.0
        )
        right = tl.load(
            b + k[:, None].to(tl.int64) * bk + j[None, :] * bn, mask=(k[:, None] < K) & (j[None, :] < N), other=0.0
        )
        total += tl.dot(left, right, input_precision="ieee", out_dtype=WIDE)
    total = total * alpha.to(WIDE)
    inside = (i[:, None] < M) & (j[None, :] < N)
    if BIAS:
        total += tl.load(bias + j[None, :], mask=j[None, :] < N, other=0.0).to(WIDE)
    if ADD:
        old = tl.load(add + z * zb + i[:, None].to(tl.int64) * zm + j[None, :] * zn, mask=inside, other=0.0)
        # With beta 0 the input does not count at all, and may hold anything.
        total += tl.where(beta == 0, 0.0, beta.to(WIDE) * old.to(WIDE))
    kind = o.dtype.element_ty
    if KIND:  # rounded where single operators would round
        total = activate(total.to(kind).to(WIDE), KIND, kind.primitive_bitwidth == 16)
    tl.store(o + z * ob + i[:, None].to(tl.int64) * om + j[None, :] * on, total.to(kind), mask=inside)


@triton.jit
def _few_rows(
    o,
    x,
    w,
    bias,
    N,
    K,
    sx,
    sw,
    so,
    M: tl.constexpr,
    BIAS: tl.constexpr,
    KIND: tl.constexpr,
    EVEN: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Rows of w are streamed once; each is multiplied with all rows of x."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    inside = j < N
    at = w + j[:, None].to(tl.int64) * sw
    kind = o.dtype.element_ty
    for r in tl.static_range(M):
        total = tl.zeros((BN, BK), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            if EVEN:
                left = tl.load(x + r * sx + k)
                right = tl.load(at + k[None, :], mask=inside[:, None], other=0.0)
            else:
                left = tl.load(x + r * sx + k, mask=k < K, other=0.0)
                right = tl.load(at + k[None, :], mask=inside[:, None] & (k < K)[None, :], other=0.0)
            total += left[None, :].to(tl.float32) * right.to(tl.float32)
        y = tl.sum(total, 1)
        if BIAS:
            y += tl.load(bias + j, mask=inside, other=0.0).to(tl.float32)
        if KIND:
            y = activate(y.to(kind).to(tl.float32), KIND, kind.primitive_bitwidth == 16)
        tl.store(o + r * so + j, y.to(kind), mask=inside)


@triton.jit
def _whole_product(
    o, a, b, bias, add, M, N, K, am, ak, ab, bk, bn, bb, om, on, ob, alpha, beta,
    BIAS: tl.constexpr, ADD: tl.constexpr, POSITIVE: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    """Integers: no tensor core multiplies them, and sums wrap as C's do."""
    i, j, z = _places(M, N, BM, BN)
    total = tl.zeros((BM, BN), tl.int64)
    for k in range(K):
        left = tl.load(a + z * ab + i.to(tl.int64) * am + k * ak, mask=i < M, other=0).to(tl.int64)
        right = tl.load(b + z * bb + k * bk + j * bn, mask=j < N, other=0).to(tl.int64)
        total += left[:, None] * right[None, :]
    inside = (i[:, None] < M) & (j[None, :] < N)
    to = z * ob + i[:, None].to(tl.int64) * om + j[None, :] * on
    total = total * alpha
    kind = o.dtype.element_ty
    if BIAS:
        total += tl.load(bias + j[None, :], mask=j[None, :] < N, other=0).to(tl.int64)
    if ADD:
        total += beta * tl.load(add + to, mask=inside, other=0).to(tl.int64)
    y = total.to(kind)
    if POSITIVE:
        y = tl.where(y < 0, 0, y).to(kind)
    tl.store(o + to, y, mask=inside)


class Whole:
    """A product of integers."""

    def __init__(self, a: Side, b: Side, out: Side, count: int, bias: bool, add: bool, activation: str) -> None:
        types = ["*" + TYPE[s.dtype] for s in (out, a, b, out, out)]
        types += ["i32"] * 3 + ["i64"] * 11
        constants = {"BIAS": bias, "ADD": add, "POSITIVE": activation == "relu"}
        self.program = Program(_whole_product, types, {**constants, "BM": 16, "BN": 16})
        sizes = (a.rows, b.cols, a.cols, a.row, a.col, a.batch, b.row, b.col, b.batch)
        self.numbers = (*sizes, out.row, out.col, out.batch)
        self.grid = (-(-a.rows // 16) * -(-b.cols // 16) * count,)

    def __call__(
        self, a: int, b: int, out: int, *, bias: int = 0, add: int = 0, alpha: float = 1, beta: float = 0
    ) -> None:
        # As on the CPU, a fractional factor of integers is cut off.
        self.program(self.grid, out, a, b, bias, add, *self.numbers, int(alpha), int(beta))


class FewRows:
    """x (few rows) @ w.T (+ bias), w dense along its rows."""

    def __init__(self, x: Side, w: Side, out: Side, bias: dt.dtype | None, activation: str) -> None:
        m, n, k = x.rows, w.rows, w.cols
        bk = min(next_power_of_two(k), 1024 if w.dtype.itemsize == 2 else 512)
        while k % bk and bk > 128:
            bk //= 2
        bn, warps = (1, 8) if k > 2048 else (2, 1 if n >= 65536 else 4)
        types = [
            "*" + TYPE[out.dtype],
            "*" + TYPE[x.dtype],
            "*" + TYPE[w.dtype],
            "*" + TYPE[bias or out.dtype],
            "i32",
            "i32",
            "i64",
            "i64",
            "i64",
        ]
        self.program = Program(
            _few_rows,
            types,
            {"M": m, "BIAS": bias is not None, "KIND": KINDS[activation], "EVEN": k % bk == 0, "BN": bn, "BK": bk},
            warps=warps,
        )
        self.numbers = (n, k, x.row, w.row, out.row)
        self.program.divisible = tuple(4 + i for i, v in enumerate(self.numbers) if v % 16 == 0)
        self.grid = (-(-n // bn),)

    def __call__(self, a: int, b: int, out: int, *, bias: int = 0, **other: Any) -> None:
        self.program(self.grid, out, a, b, bias, *self.numbers)


class Plain:
    """Any product by the plain kernel."""

    def __init__(
        self,
        a: Side,
        b: Side,
        out: Side,
        count: int,
        bias: dt.dtype | None = None,
        add: bool = False,
        activation: str = "",
    ) -> None:
        double = out.dtype is dt.float64
        number = "fp64" if double else "fp32"
        big = a.rows > 64 and b.cols > 64 and not double
        bm = bn = 64 if big else 32
        kinds = (out.dtype, a.dtype, b.dtype, bias or out.dtype, out.dtype)
        types = ["*" + TYPE[k] for k in kinds]
        types += ["i32"] * 3 + ["i64"] * 12 + [number] * 2
        self.program = Program(
            _product,
            types,
            {
                "BIAS": bias is not None,
                "ADD": add,
                "KIND": KINDS[activation],
                "WIDE": tl.float64 if double else tl.float32,
                "BM": bm,
                "BN": bn,
                "BK": 32,
            },
        )
        to = (out.row, out.col, out.batch)
        sizes = (a.rows, b.cols, a.cols, a.row, a.col, a.batch, b.row, b.col, b.batch)
        self.numbers = (*sizes, *to, *to)
        self.grid = (-(-a.rows // bm) * -(-b.cols // bn) * count,)

    def __call__(
        self, a: int, b: int, out: int, *, bias: int = 0, add: int = 0, alpha: float = 1.0, beta: float = 0.0
    ) -> None:
        self.program(self.grid, out, a, b, bias, add, *self.numbers, alpha, beta)
