"""Products of a few rows by tensor cores at the speed of memory: weights are read once, however many
rows there are. Knows addresses and sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ... import runtime as rt
from ...device import math as m
from ...programs.dependent_launch import dependent, launch_dependents, wait_for_previous
from ...programs.layouts import next_power_of_two
from ...programs.lines import scratch
from ...programs.program import TYPE
from ...runtime import here_count
from ...runtime.autotune import WORTH_TIMING, Autotuned
from ...runtime.views import View, empty, zero

MOST = 64  # rows
LEAST = 2
# Features and inner size of a tile, warps and stages, and whether sums are shared among programs where
# there are few features. A gate has two weights. The first call takes the fastest.
PLAIN = ((64, 128, 4, 5, True), (64, 128, 4, 5, False), (32, 256, 4, 4, False))
GATED = ((64, 64, 4, 5, False), (32, 256, 8, 3, False))
PROGRAMS = 2  # per multiprocessor, that share sums
COUNTERS = 4096


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
    o, x, w0, w1, w2, residual, parts, counts, n0, n1, N, K, M, each,
    GATED: tl.constexpr, ADD: tl.constexpr, EVEN: tl.constexpr, SPLIT: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AHEAD: tl.constexpr, DEPENDENT: tl.constexpr,
):  # fmt: skip
    """A program makes BN features of all rows, or a share of their sums: who is last adds those up.
    Weights lie side by side, or two are gated; sizes are multiples of BN where there are several, so a
    block never spans two. Features are the rows of a tile: tensor cores want 64 of them.
    """
    launch_dependents(DEPENDENT)
    block = tl.program_id(0) // SPLIT
    share = tl.program_id(0) % SPLIT
    first = block * BN
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
    begin = share * each
    end = tl.minimum(begin + each, K)
    if DEPENDENT:
        # The rows are still being made, the weights are there.
        line = begin + tl.arange(0, AHEAD) * 64
        ahead = tl.where((j < N)[:, None], row[:, None], 0) + tl.where(line < end, line, 0)[None, :]
        _fetch(w + ahead)
        if GATED:
            _fetch(w1 + ahead)
    wait_for_previous(DEPENDENT)

    i = tl.arange(0, BM)
    k = tl.arange(0, BK)
    rows = (i < M)[None, :]
    columns = (j < N)[:, None]
    right = x + i[None, :] * K + k[:, None]
    left = row[:, None] + k[None, :]
    total = tl.zeros((BN, BM), tl.float32)
    other = tl.zeros((BN, BM), tl.float32)
    for done in range(begin, end, BK):
        if EVEN:
            a = tl.load(right + done, mask=rows, other=0.0)
            b = tl.load(w + left + done, mask=columns, other=0.0)
        else:
            a = tl.load(right + done, mask=rows & (k < end - done)[:, None], other=0.0)
            b = tl.load(w + left + done, mask=columns & (k < end - done)[None, :], other=0.0)
        total = tl.dot(b, a, total)
        if GATED:
            if EVEN:
                c = tl.load(w1 + left + done, mask=columns, other=0.0)
            else:
                c = tl.load(w1 + left + done, mask=columns & (k < end - done)[None, :], other=0.0)
            other = tl.dot(c, a, other)

    to = i[None, :] * N + j[:, None]
    inside = rows & columns
    last = tl.full((), 1, tl.int1)
    if SPLIT > 1:
        size = M.to(tl.int64) * N
        tl.store(parts + share * size + to, total, mask=inside)
        if GATED:
            tl.store(parts + (SPLIT + share) * size + to, other, mask=inside)
        tl.debug_barrier()
        last = tl.atomic_add(counts + block, 1) == SPLIT - 1
        if last:
            tl.store(counts + block, 0)
            total = tl.zeros((BN, BM), tl.float32)
            other = tl.zeros((BN, BM), tl.float32)
            for q in tl.static_range(SPLIT):
                total += tl.load(parts + q * size + to, mask=inside, other=0.0)
                if GATED:
                    other += tl.load(parts + (SPLIT + q) * size + to, mask=inside, other=0.0)
    # Rounded where single operators would round, so that both ways agree.
    kind = o.dtype.element_ty
    y = total.to(kind).to(tl.float32)
    if GATED:
        y = (y * tl.sigmoid(y)).to(kind).to(tl.float32) * other.to(kind).to(tl.float32)
    if ADD:
        y += tl.load(residual + to, mask=inside & last, other=0.0).to(tl.float32)
    tl.store(o + to, y.to(kind), mask=inside & last)


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


class _Zeros:
    """Zeros for programs to count with; whoever is last leaves zeros."""

    def __init__(self, like: Spec) -> None:
        self.view = scratch(like, COUNTERS, dt.int32)
        zero(self.view)


_zeros: dict[tuple[int, int], _Zeros] = {}  # by device and stream: work on a stream never overlaps


def counters(like: Spec) -> int:
    """Where the counters of the current stream lie; a graph has its own, and begins by writing them."""
    here = rt.here
    if here.capturing:
        found = next((k for k in here.kept if isinstance(k, _Zeros)), None)
        if found is None:
            found = _Zeros(like)
            here.kept.append(found)
    else:
        found = _zeros.get((here.device, here.stream))
        if found is None:
            found = _zeros[here.device, here.stream] = _Zeros(like)
    return found.view.ptr


class _Tiles:
    """The launch of a product by tiles of one size."""

    def __init__(self, dtype: dt.dtype, rows: int, k: int, sizes: list[int], gated: bool, add: bool, tile: Any) -> None:
        bn, bk, warps, stages, shared = tile
        while len(sizes) > 1 and not gated and any(s % bn for s in sizes):
            bn //= 2
        bk = min(bk, next_power_of_two(max(k, 16)))
        n = sizes[0] if gated else sum(sizes)
        blocks = -(-n // bn)
        split = max(1, min(PROGRAMS * here_count() // blocks, k // (8 * bk))) if shared else 1
        self.split = split = 1 << (split.bit_length() - 1)
        each = -(-k // (split * bk)) * bk
        kind = "*" + TYPE[dtype]
        self.program = dependent(
            _streamed,
            [kind] * 6 + ["*fp32", "*i32"] + ["i32"] * 6,
            {
                "GATED": gated,
                "ADD": add,
                "EVEN": k % bk == 0,
                "SPLIT": split,
                "BM": max(16, next_power_of_two(rows)),
                "BN": bn,
                "BK": bk,
                "AHEAD": next_power_of_two(stages * bk // 64),
            },
            warps=warps,
            stages=stages,
        )
        self.numbers = (sizes[0], sizes[1] if len(sizes) > 1 else 0, n, k, rows, each)
        self.program.divisible = tuple(8 + i for i, v in enumerate(self.numbers) if i != 4 and v % 16 == 0)
        self.grid = (blocks * split,)
        self.room = split * (1 + gated) * rows * n

    def __call__(self, o: View, x: int, weights: list[int], residual: int = 0) -> None:
        first, second, third = (*weights, weights[0], weights[0])[:3]
        parts = counts = o.ptr
        if self.split > 1:
            sums = scratch(o.spec, self.room, dt.float32)
            parts, counts = sums.ptr, counters(o.spec)
        self.program(self.grid, o.ptr, x, first, second, third, residual or o.ptr, parts, counts, *self.numbers)


def streamed(
    dtype: dt.dtype, rows: int, k: int, sizes: list[int], *, gated: bool = False, add: bool = False
) -> Callable[..., None]:
    """`run(out, x, weights, residual)`: `x @ w.T` for weights side by side (or gated), and what is
    added to it.
    """
    made = [_Tiles(dtype, rows, k, sizes, gated, add, tile) for tile in (GATED if gated else PLAIN)]
    # Where nothing is shared, the first two are the same.
    ways = made if gated or made[0].split > 1 else made[1:]
    return Autotuned(list(ways), WORTH_TIMING)


def streams(dtype: dt.dtype, rows: int, k: int, sizes: list[int], gated: bool = False) -> bool:
    """Whether a product of so many rows is made so."""
    whole = gated or len(sizes) == 1 or not any(s % 16 for s in sizes)
    return dtype in dt.HALF and LEAST <= rows <= MOST and whole and k % 8 == 0
