"""Products with weights in blocks, as launches: a few rows at the speed of memory, any number by tensor cores. Weights
are decoded in registers and never lie in memory as numbers. Knows addresses and sizes, not tensors.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ... import precision
from ... import runtime as rt
from ...programs.layouts import next_power_of_two
from ...programs.lines import scratch
from ...programs.program import Program, pointer
from ...programs.types import wide
from ...runtime import here_count
from ...runtime.views import View
from .blocks import Format, tile
from .tables import multiples

PROGRAMS = 4  # per multiprocessor, below which sums are shared
SHARES = 16  # at most


@triton.jit
def _few(
    o, x, w, bias, N, K, M, sx, sw, each,
    BIAS: tl.constexpr, SPLIT: tl.constexpr, FORMAT: tl.constexpr, SIZE: tl.constexpr, GROUPS: tl.constexpr,
    BYTES: tl.constexpr, WIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BG: tl.constexpr,
):  # fmt: skip
    """A program makes BN features of all rows, or a share of their sums. Grid: (features / BN x shares,). K and `each`
    count groups. Sums stay apart until the end, so that threads need each other only once.
    """
    share = tl.program_id(0) % SPLIT
    j = tl.program_id(0) // SPLIT * BN + tl.arange(0, BN)
    i = tl.arange(0, BM)
    e = tl.arange(0, SIZE)[None, None, None, :]
    row = (j.to(tl.int64) * sw)[:, None, None]
    left = i.to(tl.int64)[:, None, None, None] * sx + e
    begin = share * each
    end = tl.minimum(begin + each, K)
    total = tl.zeros((BM, BN, BG, SIZE), WIDE)
    for start in range(begin, end, BG):
        g = start + tl.arange(0, BG)
        known = (j < N)[:, None, None] & (g < end)[None, :, None]
        b = tile(w, row, g[None, :, None], known, FORMAT, SIZE, GROUPS, BYTES)
        here = (i < M)[:, None, None, None] & (g < end)[None, None, :, None]
        a = tl.load(x + left + (g * SIZE)[None, None, :, None], mask=here, other=0.0)
        total += a.to(WIDE) * b[None, :, :, :].to(WIDE)

    y = tl.sum(tl.sum(total, 3), 2)
    if BIAS:
        y += tl.load(bias + j, mask=j < N, other=0.0).to(WIDE)[None, :]
    to = (share.to(tl.int64) * M + i[:, None]) * N + j[None, :]
    tl.store(o + to, y.to(o.dtype.element_ty), mask=(i < M)[:, None] & (j < N)[None, :])


@triton.jit
def _tiles(
    o, x, w, bias, M, N, K, sx, sw, each,
    BIAS: tl.constexpr, SPLIT: tl.constexpr, ALONG: tl.constexpr, PRECISION: tl.constexpr, FORMAT: tl.constexpr,
    SIZE: tl.constexpr, GROUPS: tl.constexpr, BYTES: tl.constexpr, WIDE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """A tile of the result, or a share of its sums. Grid: (rows / BM x features / BN x shares,): programs side by side
    read the same weights. ALONG: sums go along the rows of w; else across them. Sizes count elements.
    """
    down = tl.cdiv(M, BM)
    at = tl.program_id(0)
    i = at % down * BM + tl.arange(0, BM)
    block = at // down // SPLIT
    share = at // down % SPLIT
    j = block * BN + tl.arange(0, BN)
    begin = share * each
    end = tl.minimum(begin + each, K)
    left = x + i.to(tl.int64)[:, None] * sx
    kind = x.dtype.element_ty
    total = tl.zeros((BM, BN), WIDE)
    for start in range(begin, end, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(left + k[None, :], mask=(i < M)[:, None] & (k < end)[None, :], other=0.0)
        if ALONG:
            g = start // SIZE + tl.arange(0, BK // SIZE)
            known = (j < N)[:, None, None] & (g < end // SIZE)[None, :, None]
            y = tile(w, (j.to(tl.int64) * sw)[:, None, None], g[None, :, None], known, FORMAT, SIZE, GROUPS, BYTES)
            b = tl.trans(tl.reshape(y.to(kind), (BN, BK)))
        else:
            g = block * (BN // SIZE) + tl.arange(0, BN // SIZE)
            known = (k < end)[:, None, None] & (g < N // SIZE)[None, :, None]
            y = tile(w, (k.to(tl.int64) * sw)[:, None, None], g[None, :, None], known, FORMAT, SIZE, GROUPS, BYTES)
            b = tl.reshape(y.to(kind), (BK, BN))
        if total.dtype == tl.float64:
            # Triton 3.6 does not compile products of doubles that were bytes a moment before.
            total += tl.sum(a[:, :, None] * b[None, :, :], 1)
        else:
            total += tl.dot(a, b, input_precision=PRECISION, out_dtype=WIDE)

    if BIAS:
        total += tl.load(bias + j, mask=j < N, other=0.0).to(WIDE)[None, :]
    to = (share.to(tl.int64) * M + i[:, None]) * N + j[None, :]
    tl.store(o + to, total.to(o.dtype.element_ty), mask=(i < M)[:, None] & (j < N)[None, :])


@triton.jit
def _joined(o, parts, bias, size, N, BIAS: tl.constexpr, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """Shares of sums added up, always in the same order. Grid: (results / BLOCK,)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(parts + i, mask=i < size, other=0.0)
    for q in tl.static_range(1, SPLIT):
        y += tl.load(parts + q * size + i, mask=i < size, other=0.0)
    if BIAS:
        y += tl.load(bias + i % N, mask=i < size, other=0.0).to(y.dtype)
    tl.store(o + i, y.to(o.dtype.element_ty), mask=i < size)


class Shared:
    """A product whose sums may be shared among programs, and the pass that adds up the shares."""

    split: int
    program: Program
    grid: tuple[int, ...]
    numbers: tuple[int, ...]

    def __init__(self, dtype: dt.dtype, rows: int, n: int, bias: bool) -> None:
        self.sums = dt.float64 if dtype is dt.float64 else dt.float32
        self.size, self.n, self.bias = rows * n, n, bias
        # The shares themselves are stored as they are: the bias is added where they come together.
        kinds = [pointer(dtype), pointer(self.sums), pointer(dtype), "i64", "i32"]
        self.join = Program(_joined, kinds, {"BIAS": bias, "SPLIT": self.split, "BLOCK": 1024})

    def __call__(self, out: View, x: int, data: int, bias: int) -> None:
        if self.split == 1:
            self.program(self.grid, out.ptr, x, data, bias or x, *self.numbers)
            return
        parts = scratch(out.spec, self.split * self.size, self.sums)
        self.program(self.grid, parts.ptr, x, data, x, *self.numbers)
        self.join((-(-self.size // 1024),), out.ptr, parts.ptr, bias or x, self.size, self.n)


def shares(programs: int, steps: int) -> int:
    """Among how many programs a sum of so many steps is shared: where too few programs would keep the device busy,
    and each still has some steps to go.
    """
    wanted = max(1, min(PROGRAMS * here_count() // programs, steps // 4, SHARES))
    return 1 << (wanted.bit_length() - 1)


class Few(Shared):
    """x (few rows) @ w.T: every weight is read once, and multiplied in float32."""

    def __init__(
        self,
        x: Spec,
        sx: int,
        rows: int,
        format: Format,
        n: int,
        k: int,
        stride: int,
        bias: bool,
        way: tuple[int, int, int],
    ) -> None:
        bn, elements, warps = way
        groups = k // format.size
        block = min(next_power_of_two(groups), elements // format.size)
        self.split = shares(-(-n // bn), -(-groups // block))
        each = -(-groups // (self.split * block)) * block
        self.split = -(-groups // each)
        super().__init__(x.dtype, rows, n, bias)
        kind = pointer(x.dtype)
        to = kind if self.split == 1 else pointer(self.sums)
        constants: dict[str, Any] = {"BIAS": bias and self.split == 1, "SPLIT": self.split, **format.constants}
        constants |= {"WIDE": wide(x.dtype), "BM": next_power_of_two(rows), "BN": bn, "BG": block}
        types = [to, kind, "*u8", kind, "i32", "i32", "i32", "i64", "i64", "i32"]
        self.program = Program(_few, types, constants, warps=warps)
        self.program.divisible = (7,) if sx % 16 == 0 else ()
        self.program.multiples = multiples(8, stride)
        self.numbers = (n, groups, rows, sx, stride, each)
        self.grid = (-(-n // bn) * self.split,)


class Tiles(Shared):
    """x @ w.T (`along`), or x @ w, by tiles that are decoded to the type of x."""

    def __init__(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, along: bool, bias: bool,
        way: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        bn, bk, warps, most = way
        bm = min(most, max(16, next_power_of_two(rows)))
        if x.dtype not in dt.HALF or rt.runtime.driver.emulated:
            bm, bn, bk = min(bm, 32), min(bn, 32), 32
        if x.dtype is dt.float64:
            bm, warps = 8, 8
        blocks = -(-rows // bm) * -(-n // bn)
        self.split = shares(blocks, -(-k // bk))
        each = -(-k // (self.split * bk)) * bk
        self.split = -(-k // each)
        super().__init__(x.dtype, rows, n, bias)
        kind = pointer(x.dtype)
        to = kind if self.split == 1 else pointer(self.sums)
        tf32 = x.dtype is dt.float32 and precision.matmul.allow_tf32
        constants: dict[str, Any] = {"BIAS": bias and self.split == 1, "SPLIT": self.split, "ALONG": along}
        constants |= {"PRECISION": "tf32" if tf32 else "ieee", **format.constants}
        constants |= {"WIDE": wide(x.dtype), "BM": bm, "BN": bn, "BK": bk}
        types = [to, kind, "*u8", kind, "i32", "i32", "i32", "i64", "i64", "i32"]
        self.program = Program(_tiles, types, constants, warps=warps)
        self.program.divisible = tuple(i for i, v in ((6, k), (7, sx), (9, each)) if v % 16 == 0)
        self.program.multiples = multiples(8, stride)
        self.numbers = (rows, n, k, sx, stride, each)
        self.grid = (blocks * self.split,)
