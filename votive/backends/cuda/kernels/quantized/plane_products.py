"""Products with weights in blocks by tensor cores, for any few rows, and by way of decoded weights for many. Knows
addresses and sizes, not tensors.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ... import runtime as rt
from ...programs.layouts import next_power_of_two
from ...programs.lines import scratch
from ...programs.program import Program, pointer
from ...runtime.views import View
from ..matmul.kernels import Side
from ..matmul.plan import engine
from .blocks import Format
from .kernels import Shared, shares
from .planes import ONE_PLANE, UNITS, unit
from .tables import Decoder, multiples

# Features, inner size of a plane, and warps; the first call takes the fastest.
BY_PLANES = ((128, 64, 4), (32, 64, 2), (64, 64, 4))
MOST = 64  # rows of a tile
ROOM = 1 << 27  # bytes of decoded weights at a time


@triton.jit
def _planes(
    o, x, w, bias, M, N, K, sx, sw, each,
    BIAS: tl.constexpr, SPLIT: tl.constexpr, FORMAT: tl.constexpr, UNIT: tl.constexpr, PER: tl.constexpr,
    BYTES: tl.constexpr, PLANES: tl.constexpr, SCALES: tl.constexpr, PERMUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BU: tl.constexpr,
):  # fmt: skip
    """A tile of x @ w.T, or a share of its sums. Grid: (rows / BM x features / BN x shares,): programs side by side
    read the same weights. K and `each` count units.
    """
    down = tl.cdiv(M, BM)
    i = tl.program_id(0) % down * BM + tl.arange(0, BM)
    block = tl.program_id(0) // down // SPLIT
    share = tl.program_id(0) // down % SPLIT
    j = block * BN + tl.arange(0, BN)
    begin = share * each
    end = tl.minimum(begin + each, K)
    WIDTH: tl.constexpr = UNIT // PLANES
    s = tl.arange(0, SCALES)[None, None, :, None]
    e = tl.arange(0, WIDTH // SCALES)[None, None, None, :]
    row = w + (j.to(tl.int64) * sw)[:, None, None, None]
    k = tl.arange(0, BU * WIDTH)
    left = x + i.to(tl.int64)[:, None] * sx + (k // WIDTH * UNIT + k % WIDTH)[None, :]
    kind = x.dtype.element_ty
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(begin, end, BU):
        u = (start + tl.arange(0, BU))[None, :, None, None]
        known = (j < N)[:, None, None, None] & (u < end)
        at = row + (u // PER * BYTES).to(tl.int64)
        first, second = unit(at, u % PER, s, e, known, FORMAT, PERMUTE)
        here = (i < M)[:, None] & (start + k // WIDTH < end)[None, :]
        a = tl.load(left + start * UNIT, mask=here, other=0.0)
        b = tl.trans(tl.reshape(first.to(kind), (BN, BU * WIDTH)))
        total = tl.dot(a, b, total)
        if PLANES == 2:
            a = tl.load(left + start * UNIT + WIDTH, mask=here, other=0.0)
            b = tl.trans(tl.reshape(second.to(kind), (BN, BU * WIDTH)))
            total = tl.dot(a, b, total)

    if BIAS:
        total += tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[None, :]
    to = (share.to(tl.int64) * M + i[:, None]) * N + j[None, :]
    tl.store(o + to, total.to(o.dtype.element_ty), mask=(i < M)[:, None] & (j < N)[None, :])


@triton.jit
def _spread_out(
    o, w, rows, units, sw, across,
    FORMAT: tl.constexpr, UNIT: tl.constexpr, PER: tl.constexpr, BYTES: tl.constexpr, PLANES: tl.constexpr,
    SCALES: tl.constexpr, PERMUTE: tl.constexpr, BR: tl.constexpr, BU: tl.constexpr,
):  # fmt: skip
    """BU units of BR rows as numbers. Grid: (rows / BR x parts of a row,)."""
    WIDTH: tl.constexpr = UNIT // PLANES
    j = tl.program_id(0) // across * BR + tl.arange(0, BR)[:, None, None, None]
    u = tl.program_id(0) % across * BU + tl.arange(0, BU)[None, :, None, None]
    s = tl.arange(0, SCALES)[None, None, :, None]
    e = tl.arange(0, WIDTH // SCALES)[None, None, None, :]
    known = (j < rows) & (u < units)
    at = w + j.to(tl.int64) * sw + (u // PER * BYTES).to(tl.int64)
    first, second = unit(at, u % PER, s, e, known, FORMAT, PERMUTE)
    to = o + (j.to(tl.int64) * units + u) * UNIT + s * (WIDTH // SCALES) + e
    tl.store(to, first.to(o.dtype.element_ty), mask=known)
    if PLANES == 2:
        tl.store(to + WIDTH, second.to(o.dtype.element_ty), mask=known)


def by_planes(x: dt.dtype, format: Format) -> bool:
    """Whether there is such a kernel for the dtype and the format."""
    return x in dt.HALF and (format.name in UNITS or format.name == "int4")


def _shape(format: Format) -> dict[str, Any]:
    elements = format.size * format.groups
    size = UNITS.get(format.name, elements)
    return {
        "FORMAT": format.name, "UNIT": size, "PER": elements // size, "BYTES": format.bytes,
        "PLANES": 1 if format.name in ONE_PLANE else 2, "SCALES": 4 if format.name == "q6_k" else 1,
        "PERMUTE": not rt.runtime.driver.emulated,
    }  # fmt: skip


class Planes(Shared):
    """x @ w.T: codes become numbers in registers, several at a time, and tensor cores multiply them."""

    def __init__(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, bias: bool,
        way: tuple[int, int, int],
    ) -> None:  # fmt: skip
        bn, inner, warps = way
        constants = _shape(format)
        width = constants["UNIT"] // constants["PLANES"]
        bm = min(MOST, max(16, next_power_of_two(rows)))
        count = max(1, inner // width)
        if rt.runtime.driver.emulated:
            bm, bn = min(bm, 32), min(bn, 32)
        units = k // constants["UNIT"]
        blocks = -(-rows // bm) * -(-n // bn)
        self.split = shares(blocks, -(-units // count))
        each = -(-units // (self.split * count)) * count
        self.split = -(-units // each)
        super().__init__(x.dtype, rows, n, bias)
        kind = pointer(x.dtype)
        to = kind if self.split == 1 else pointer(self.sums)
        constants |= {"BIAS": bias and self.split == 1, "SPLIT": self.split, "BM": bm, "BN": bn, "BU": count}
        types = [to, kind, "*u8", kind, "i32", "i32", "i32", "i64", "i64", "i32"]
        self.program = Program(_planes, types, constants, warps=warps)
        self.program.divisible = (7,) if sx % 16 == 0 else ()
        self.program.multiples = multiples(8, stride)
        self.numbers = (rows, n, units, sx, stride, each)
        self.grid = (blocks * self.split,)


class _Spread:
    """Rows of blocks as dense rows of half numbers, with the rounding of `Planes`."""

    def __init__(self, format: Format, dtype: dt.dtype, rows: int, k: int, stride: int) -> None:
        constants = _shape(format)
        units = k // constants["UNIT"]
        count = max(1, 256 // constants["UNIT"])
        self.across = -(-units // count)
        constants |= {"BR": 8, "BU": count}
        self.program = Program(_spread_out, [pointer(dtype), "*u8", "i32", "i32", "i64", "i32"], constants)
        self.program.multiples = multiples(4, stride)
        self.grid = (-(-rows // 8) * self.across,)
        self.numbers = (rows, units, stride, self.across)

    def __call__(self, out: int, data: int) -> None:
        self.program(self.grid, out, data, *self.numbers)


class Decoded:
    """x @ w.T (`along`), or x @ w: some rows (or columns) of w at a time become numbers in memory, and the library
    multiplies. Where many rows share them this costs less than taking codes apart for each tile.
    """

    def __init__(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, along: bool, bias: bool
    ) -> None:
        item = x.dtype.itemsize
        # What is cut: features, which are rows of blocks, or columns, which are parts of rows.
        block = format.size * format.groups
        step = 256 if along else block * max(1, 256 // block)
        self.most = min(max(step, ROOM // (k * item) // step * step), n)
        self.parts: list[tuple[int, int, Any, Any]] = []
        made: dict[int, tuple[Any, Any]] = {}
        for start in range(0, n, self.most):
            count = min(self.most, n - start)
            if count not in made:
                made[count] = self._part(x, sx, rows, format, n, count, k, stride, along, bias)
            offset = start * stride if along else start // block * format.bytes
            self.parts.append((start * item, offset, *made[count]))
        self.room = self.most * k

    def _part(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, count: int, k: int, stride: int, along: bool,
        bias: bool,
    ) -> tuple[Any, Any]:  # fmt: skip
        decode: Any
        down, across = (count, k) if along else (k, count)
        if by_planes(x.dtype, format):
            decode = _Spread(format, x.dtype, down, across, stride)
        else:
            table = Decoder(format, down, across // format.size, stride, x.dtype, None)
            decode = lambda out, data: table(down, out, data)
        left = Side(x.dtype, rows, k, sx, 1, 0)
        right = Side(x.dtype, k, count, *((1, k) if along else (count, 1)), 0)
        out = Side(x.dtype, rows, count, n, 1, 0)
        return decode, engine(left, right, out, 1, x.dtype if bias else None, False, "")

    def __call__(self, out: View, x: int, data: int, bias: int) -> None:
        room = scratch(out.spec, self.room, out.spec.dtype)
        for to, offset, decode, product in self.parts:
            decode(room.ptr, data + offset)
            product(x, room.ptr, out.ptr + to, bias=bias + to if bias else 0)
