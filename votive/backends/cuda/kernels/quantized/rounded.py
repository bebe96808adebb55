"""Products of a few rows with weights in blocks whose input is rounded to eight bits: one instruction multiplies four
codes and adds them up, in whole numbers. Knows addresses and sizes, not tensors.

A lane takes a piece of a block, 32 codes in two runs, and rounds the row's numbers that belong to them itself, once
for all features of its program. Each run of 16 neighbours of a row has a scale of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ... import runtime as rt
from ...programs.layouts import next_power_of_two
from ...programs.program import Program, pointer
from .blocks import Format, _half, _single
from .kernels import Shared, shares
from .tables import multiples
from .words import _even, _four, _scales, _whole

# Formats that are faster so; with codes of five bits and more the float32 kernel is level, and rounds nothing.
KINDS = frozenset(["q4_0", "q4_1", "q4_k", "int4", "int8"])
# Features and pieces of a program, warps, and pairs of runs of a piece; the first call takes the fastest.
BY_ROUNDED = ((8, 64, 2, 1), (8, 128, 4, 1), (16, 32, 1, 1), (8, 32, 1, 1), (4, 128, 4, 1), (16, 128, 4, 1))
# Chunks of Q4_K share their scales among two pairs.
BY_CHUNKS = (*BY_ROUNDED, (8, 64, 2, 2), (4, 32, 1, 2), (16, 64, 4, 2))
ROWS = 2  # that such a kernel takes at most
_ROUND = tl.constexpr(12582912.0)  # added to a small number, it leaves the nearest whole one in the lowest bits
_PACK = tl.constexpr(
    "{ .reg .b32 t; .reg .b32 u; prmt.b32 t, $1, $2, 0x0040; prmt.b32 u, $3, $4, 0x0040; prmt.b32 $0, t, u, 0x5410; }"
)


@triton.jit
def _dot(c, a, b, PERMUTE: tl.constexpr):
    """The products of four bytes and four signed ones, added to a total."""
    if PERMUTE:
        return tl.inline_asm_elementwise("dp4a.u32.s32 $0, $1, $2, $3;", "=r,r,r,r", [a, b, c], tl.int32, True, 1)
    for i in tl.static_range(4):
        c += ((a >> (8 * i)) & 255) * ((((b >> (8 * i)) & 255) ^ 128) - 128)
    return c


@triton.jit
def _dots(p, q, r, s, a, b, c, d, PERMUTE: tl.constexpr):
    total = _dot(tl.zeros_like(p), p, a, PERMUTE)
    total = _dot(total, q, b, PERMUTE)
    total = _dot(total, r, c, PERMUTE)
    return _dot(total, s, d, PERMUTE).to(tl.float32)


@triton.jit
def _most(a, b, c, d):
    return tl.maximum(tl.maximum(tl.abs(a), tl.abs(b)), tl.maximum(tl.abs(c), tl.abs(d)))


@triton.jit
def _word(a, b, c, d, back, PERMUTE: tl.constexpr):
    """Four numbers as the bytes of a word."""
    a = (a * back + _ROUND).to(tl.int32, bitcast=True)
    b = (b * back + _ROUND).to(tl.int32, bitcast=True)
    c = (c * back + _ROUND).to(tl.int32, bitcast=True)
    d = (d * back + _ROUND).to(tl.int32, bitcast=True)
    if PERMUTE:
        return tl.inline_asm_elementwise(_PACK, "=r,r,r,r,r", [a, b, c, d], tl.int32, True, 1)
    return (a & 255) | ((b & 255) << 8) | ((c & 255) << 16) | ((d & 255) << 24)


@triton.jit
def _run(x, at, here, PACKED: tl.constexpr, PERMUTE: tl.constexpr):
    """Sixteen neighbours of a row: four words of bytes, their scale, and what the bytes stand for together."""
    a0, b0, c0, d0, n0 = _four(x, at, here, PACKED)
    a1, b1, c1, d1, n1 = _four(x, at + 4, here, PACKED)
    a2, b2, c2, d2, n2 = _four(x, at + 8, here, PACKED)
    a3, b3, c3, d3, n3 = _four(x, at + 12, here, PACKED)
    most = tl.maximum(
        tl.maximum(_most(a0, b0, c0, d0), _most(a1, b1, c1, d1)),
        tl.maximum(_most(a2, b2, c2, d2), _most(a3, b3, c3, d3)),
    )
    back = tl.where(most > 0.0, 127.0 / most, 0.0)
    # What is not finite makes the scale, and so the result, not a number.
    scale = most * (1.0 / 127.0) + ((n0 + n1) + (n2 + n3)) * 0.0
    p = _word(a0, b0, c0, d0, back, PERMUTE)
    q = _word(a1, b1, c1, d1, back, PERMUTE)
    r = _word(a2, b2, c2, d2, back, PERMUTE)
    s = _word(a3, b3, c3, d3, back, PERMUTE)
    ones = tl.full(p.shape, 0x01010101, tl.int32)
    return p, q, r, s, scale, _dots(ones, ones, ones, ones, p, q, r, s, PERMUTE) * scale


@triton.jit
def _four_words(at, known, WHOLE: tl.constexpr):
    if WHOLE:
        return _whole(at, known), _whole(at + 4, known), _whole(at + 8, known), _whole(at + 12, known)
    return _even(at, known), _even(at + 4, known), _even(at + 8, known), _even(at + 12, known)


@triton.jit
def _scaled(at, part, known, FORMAT: tl.constexpr, PERMUTE: tl.constexpr, TIMES: tl.constexpr):
    """Scales and minima of both runs of a piece: numbers are `scale * code - minimum`."""
    if FORMAT == "q4_k":
        s0, s1, m0, m1 = _scales(at, part if TIMES == 2 else part // 2, known, PERMUTE)
    else:
        if FORMAT == "q4_0":
            s0 = _half(at, known)
            m0 = 8.0 * s0
        elif FORMAT == "q4_1":
            s0 = _half(at, known)
            m0 = -_half(at + 2, known)
        else:
            s0 = _single(at, known)
            m0 = _half(at + 4, known) * s0
        s1, m1 = s0, m0
    if FORMAT != "int8":
        # Bytes have no sign, so that high halves may stay where they are: sixteen times as large.
        s1 = s1 * 0.0625
    return s0, s1, m0, m1


@triton.jit
def _codes(at, part, chunk, pair, known, FORMAT: tl.constexpr):
    """Four words of codes of each of the two runs of a piece."""
    if FORMAT == "int8":
        a0, a1, a2, a3 = _four_words(at + 6 + part * 32, known, False)
        b0, b1, b2, b3 = _four_words(at + 22 + part * 32, known, False)
    else:
        if FORMAT == "q4_k":
            w0, w1, w2, w3 = _four_words(at + 16 + chunk * 32 + pair * 16, known, True)
        elif FORMAT == "int4":
            w0, w1, w2, w3 = _four_words(at + 6 + part * 16, known, False)
        else:
            w0, w1, w2, w3 = _four_words(at + (4 if FORMAT == "q4_1" else 2), known, False)
        a0, a1, a2, a3 = w0 & 0x0F0F0F0F, w1 & 0x0F0F0F0F, w2 & 0x0F0F0F0F, w3 & 0x0F0F0F0F
        b0, b1, b2, b3 = w0 & -0x0F0F0F10, w1 & -0x0F0F0F10, w2 & -0x0F0F0F10, w3 & -0x0F0F0F10
    return a0, a1, a2, a3, b0, b1, b2, b3


@triton.jit
def _places(part, chunk, pair, FORMAT: tl.constexpr, SIZE: tl.constexpr):
    """Where two runs of a piece begin among the elements of their block."""
    if FORMAT == "q4_k":
        first = chunk * 64 + pair * 16
        return first, first + 32
    elif FORMAT == "int4":
        return part * 16, part * 16 + SIZE // 2
    else:
        return part * 32, part * 32 + 16


@triton.jit
def _rounded(
    o, x, w, bias, N, K, M, sx, sw, each,
    BIAS: tl.constexpr, SPLIT: tl.constexpr, FORMAT: tl.constexpr, SIZE: tl.constexpr, BYTES: tl.constexpr,
    PACKED: tl.constexpr, PERMUTE: tl.constexpr, TIMES: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """A program makes BN features of all rows, or a share of their sums. Grid: (features / BN x shares,). K and `each`
    count pieces, of TIMES pairs of runs. Sums stay apart until the end, so that threads need each other only once.
    """
    share = tl.program_id(0) % SPLIT
    j = tl.program_id(0) // SPLIT * BN + tl.arange(0, BN)
    i = tl.arange(0, BM)
    # Pieces come first: loads whose neighbours lie apart are spread over threads from the first dimension on.
    rows = (w + j.to(tl.int64) * sw)[None, :, None]
    left = (i.to(tl.int64) * sx)[None, None, :]
    begin = share * each
    end = tl.minimum(begin + each, K)
    PIECES: tl.constexpr = SIZE // (32 * TIMES)
    total = tl.zeros((BP, BN, BM), tl.float32)
    for start in range(begin, end, BP):
        p = (start + tl.arange(0, BP))[:, None, None]
        here = (i < M)[None, None, :] & (p < end)
        known = (j < N)[None, :, None] & (p < end)
        block, part = p // PIECES, p % PIECES
        to = left + block * SIZE
        at = rows + (block * BYTES).to(tl.int64)
        s0, s1, m0, m1 = _scaled(at, part, known, FORMAT, PERMUTE, TIMES)
        for u in tl.static_range(TIMES):
            # Chunks of 64 codes have two pairs of runs: taken one after the other, or as pieces of their own.
            chunk, pair = (part, u) if TIMES == 2 else (part // 2, part % 2)
            first, second = _places(part, chunk, pair, FORMAT, SIZE)
            a0, a1, a2, a3, xs0, xn0 = _run(x, to + first, here, PACKED, PERMUTE)
            b0, b1, b2, b3, xs1, xn1 = _run(x, to + second, here, PACKED, PERMUTE)
            p0, p1, p2, p3, q0, q1, q2, q3 = _codes(at, part, chunk, pair, known, FORMAT)
            total += (s0 * xs0) * _dots(p0, p1, p2, p3, a0, a1, a2, a3, PERMUTE) - m0 * xn0
            total += (s1 * xs1) * _dots(q0, q1, q2, q3, b0, b1, b2, b3, PERMUTE) - m1 * xn1

    y = tl.sum(total, 0)
    if BIAS:
        y += tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[:, None]
    to = (share.to(tl.int64) * M + i[None, :]) * N + j[:, None]
    tl.store(o + to, y.to(o.dtype.element_ty), mask=(i < M)[None, :] & (j < N)[:, None])


def rounds(x: dt.dtype, format: Format, rows: int) -> bool:
    """Whether there is such a kernel for the dtype, the format and so many rows."""
    return rows <= ROWS and x in dt.HALF and format.name in KINDS


def ways(format: Format) -> tuple[tuple[int, int, int, int], ...]:
    """What such a kernel may be made with."""
    return BY_CHUNKS if format.name == "q4_k" else BY_ROUNDED


class Rounded(Shared):
    """x (few rows, rounded to eight bits) @ w.T: every weight is read once."""

    def __init__(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, bias: bool, packed: bool,
        way: tuple[int, int, int, int],
    ) -> None:  # fmt: skip
        bn, block, warps, times = way
        pieces = k // (32 * times)
        self.split = shares(-(-n // bn), -(-pieces // block))
        each = -(-pieces // (self.split * block)) * block
        self.split = -(-pieces // each)
        super().__init__(x.dtype, rows, n, bias)
        kind = pointer(x.dtype)
        to = kind if self.split == 1 else pointer(self.sums)
        constants: dict[str, int | str | bool] = {"BIAS": bias and self.split == 1, "SPLIT": self.split}
        constants |= {"FORMAT": format.name, "SIZE": format.size * format.groups, "BYTES": format.bytes}
        constants |= {"PACKED": packed, "PERMUTE": not rt.runtime.driver.emulated, "TIMES": times}
        constants |= {"BM": next_power_of_two(rows), "BN": bn, "BP": block}
        types = [to, kind, "*u8", kind, "i32", "i32", "i32", "i64", "i64", "i32"]
        self.program = Program(_rounded, types, constants, warps=warps)
        self.program.divisible = (7,) if sx % 16 == 0 else ()
        self.program.multiples = multiples(8, stride)
        self.numbers = (n, pieces, rows, sx, stride, each)
        self.grid = (-(-n // bn) * self.split,)
