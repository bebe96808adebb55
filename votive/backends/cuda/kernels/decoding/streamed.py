"""Products of a few rows by tensor cores at the speed of memory: weights are read once, however many
rows there are. Knows addresses and sizes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ...device import math as m
from ...programs.dependent_launch import dependent, launch_dependents, wait_for_previous
from ...programs.layouts import next_power_of_two
from ...programs.program import TYPE
from ...runtime.views import View, empty

MOST = 64  # rows
LEAST = 2
# Features and inner size of a tile, warps and stages; a gate has two weights.
PLAIN, GATED = (32, 256, 4, 4), (16, 256, 4, 4)


@triton.jit
def _fetch(at):
    """Bring lines of memory into the cache; nobody waits."""
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [at], dtype=tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _normed(o, x, norm, K, eps, BK: tl.constexpr, DEPENDENT: tl.constexpr):
    # Grid: rows.
    launch_dependents(DEPENDENT)
    k = tl.arange(0, BK)
    g = tl.load(norm + k, mask=k < K, other=0.0).to(tl.float32)
    wait_for_previous(DEPENDENT)
    at = tl.program_id(0) * K + k
    v = tl.load(x + at, mask=k < K, other=0.0).to(tl.float32)
    scale = 1.0 / m.f_sqrt(tl.sum(v * v, 0) / K + eps)
    tl.store(o + at, (v * scale * g).to(o.dtype.element_ty), mask=k < K)


@triton.jit
def _streamed(
    o, x, w0, w1, w2, residual, n0, n1, N, K, M,
    GATED: tl.constexpr, ADD: tl.constexpr, EVEN: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """A program makes BN features of all rows. Weights lie side by side, or two are gated; sizes are
    multiples of BN where there are several, so a block never spans two.
    """
    launch_dependents(DEPENDENT)
    first = tl.program_id(0) * BN
    w = w0
    start = 0
    if not GATED:
        if first >= n0 + n1:
            w = w2
            start = n0 + n1
        elif first >= n0:
            w = w1
            start = n0
    j = first + tl.arange(0, BN)
    row = (j - start).to(tl.int64) * K
    if DEPENDENT:
        # The rows are still being made, the weights are there.
        line = tl.arange(0, AHEAD) * 64
        ahead = tl.where((j < N)[:, None], row[:, None], 0) + tl.where(line < K, line, 0)[None, :]
        _fetch(w + ahead)
        if GATED:
            _fetch(w1 + ahead)
    wait_for_previous(DEPENDENT)

    i = tl.arange(0, BM)
    k = tl.arange(0, BK)
    left = x + i[:, None] * K + k[None, :]
    right = row[None, :] + k[:, None]
    rows = (i < M)[:, None]
    columns = (j < N)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    other = tl.zeros((BM, BN), tl.float32)
    for done in range(0, K, BK):
        if EVEN:
            a = tl.load(left + done, mask=rows, other=0.0)
            b = tl.load(w + right + done, mask=columns, other=0.0)
        else:
            a = tl.load(left + done, mask=rows & (k < K - done)[None, :], other=0.0)
            b = tl.load(w + right + done, mask=columns & (k < K - done)[:, None], other=0.0)
        total = tl.dot(a, b, total)
        if GATED:
            if EVEN:
                c = tl.load(w1 + right + done, mask=columns, other=0.0)
            else:
                c = tl.load(w1 + right + done, mask=columns & (k < K - done)[:, None], other=0.0)
            other = tl.dot(a, c, other)

    # Rounded where single operators would round, so that both ways agree.
    kind = o.dtype.element_ty
    to = i[:, None] * N + j[None, :]
    y = total.to(kind).to(tl.float32)
    if GATED:
        y = (y * tl.sigmoid(y)).to(kind).to(tl.float32) * other.to(kind).to(tl.float32)
    if ADD:
        y += tl.load(residual + to, mask=rows & columns, other=0.0).to(tl.float32)
    tl.store(o + to, y.to(kind), mask=rows & columns)


class Normed:
    """Rows divided by their root mean square, times a weight."""

    def __init__(self, dtype: dt.dtype, rows: int, k: int, eps: float, device: object) -> None:
        kind, block = "*" + TYPE[dtype], next_power_of_two(max(k, 16))
        self.program = dependent(_normed, [kind] * 3 + ["i32", "fp32"], {"BK": block}, warps=4 if block <= 4096 else 8)
        self.program.divisible = (3,) if k % 16 == 0 else ()
        self.spec = Spec(Layout((rows, k)), dtype, device)  # type: ignore[arg-type]
        self.grid, self.numbers = (rows,), (k, float(eps))

    def __call__(self, x: int, norm: int) -> View:
        made = empty(self.spec)
        self.program(self.grid, made.ptr, x, norm, *self.numbers)
        return made


class Streamed:
    """`x @ w.T` for weights side by side (or gated), and what is added to it."""

    def __init__(
        self, dtype: dt.dtype, rows: int, k: int, sizes: list[int], *, gated: bool = False, add: bool = False
    ) -> None:
        bn, bk, warps, stages = GATED if gated else PLAIN
        while len(sizes) > 1 and not gated and any(s % bn for s in sizes):
            bn //= 2
        bk = min(bk, next_power_of_two(max(k, 16)))
        n = sizes[0] if gated else sum(sizes)
        kind = "*" + TYPE[dtype]
        self.program = dependent(
            _streamed,
            [kind] * 6 + ["i32"] * 5,
            {
                "GATED": gated,
                "ADD": add,
                "EVEN": k % bk == 0,
                "BM": max(16, next_power_of_two(rows)),
                "BN": bn,
                "BK": bk,
                "AHEAD": next_power_of_two(stages * bk // 64),
            },
            warps=warps,
            stages=stages,
        )
        self.numbers = (sizes[0], sizes[1] if len(sizes) > 1 else 0, n, k, rows)
        self.program.divisible = tuple(6 + i for i, v in enumerate(self.numbers[:4]) if v % 16 == 0)
        self.grid = (-(-n // bn),)

    def __call__(self, o: int, x: int, weights: list[int], residual: int = 0) -> None:
        first, second, third = (*weights, weights[0], weights[0])[:3]
        self.program(self.grid, o, x, first, second, third, residual or o, *self.numbers)


def streams(dtype: dt.dtype, rows: int, k: int, sizes: list[int], gated: bool = False) -> bool:
    """Whether a product of so many rows is made so."""
    whole = gated or len(sizes) == 1 or not any(s % 16 for s in sizes)
    return dtype in dt.HALF and LEAST <= rows <= MOST and whole and k % 8 == 0
