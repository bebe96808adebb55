"""Products of a few rows with weights in blocks, four codes at a time. Knows addresses and sizes, not tensors.

A lane takes a piece of a block, some words of codes that share their scales, and reads the row's numbers that belong
to them once for all features of its program. A word is four bytes, which hold a code each after a shift and a mask. A
code becomes a number without a conversion, which takes eight times as long as an addition: as the last bits of 2**23
it is one already.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ... import runtime as rt
from ...programs.layouts import next_power_of_two
from ...programs.program import Program, pointer
from .blocks import Format
from .kernels import Shared, shares
from .tables import multiples

# Pieces of a block.
PIECES = {"q4_0": 2, "q4_1": 2, "q5_0": 2, "q5_1": 2, "q8_0": 4, "q4_k": 8, "q5_k": 8, "q6_k": 8}
# Features and pieces of a program, and warps; the first call takes the fastest.
BY_PIECES = ((4, 128, 4), (8, 32, 1), (4, 32, 1), (2, 128, 4), (8, 128, 4), (4, 64, 2))


@triton.jit
def _whole(at, known):
    """Four bytes whose address is a multiple of four."""
    return tl.load(at.to(tl.pointer_type(tl.int32)), mask=known, other=0)


@triton.jit
def _even(at, known):
    """Four bytes whose address is even."""
    halves = at.to(tl.pointer_type(tl.uint16))
    low = tl.load(halves, mask=known, other=0).to(tl.int32)
    return low | (tl.load(halves + 1, mask=known, other=0).to(tl.int32) << 16)


@triton.jit
def _half(bits):
    """The half number in the lowest sixteen bits."""
    return bits.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def _number(word, AT: tl.constexpr, LESS: tl.constexpr, PERMUTE: tl.constexpr):
    """A byte of a word, less a number. PERMUTE: one instruction puts it behind 2**23, which compilers do not find."""
    if not PERMUTE:
        bits = ((word >> (8 * AT)) & 255) | 0x4B000000
    elif AT == 0:
        bits = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0x4B000000, 0x7440;", "=r,r", [word], tl.int32, True, 1)
    elif AT == 1:
        bits = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0x4B000000, 0x7441;", "=r,r", [word], tl.int32, True, 1)
    elif AT == 2:
        bits = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0x4B000000, 0x7442;", "=r,r", [word], tl.int32, True, 1)
    else:
        bits = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0x4B000000, 0x7443;", "=r,r", [word], tl.int32, True, 1)
    return bits.to(tl.float32, bitcast=True) - (8388608.0 + LESS)


@triton.jit
def _four(x, at, known, PACKED: tl.constexpr):
    """Four neighbours of the row, and their sum."""
    if PACKED:
        both = tl.load((x + at).to(tl.pointer_type(tl.int64)), mask=known, other=0)
        low, high = both.to(tl.int32), (both >> 32).to(tl.int32)
        if x.dtype.element_ty == tl.bfloat16:
            a = (low << 16).to(tl.float32, bitcast=True)
            b = (low & -65536).to(tl.float32, bitcast=True)
            c = (high << 16).to(tl.float32, bitcast=True)
            d = (high & -65536).to(tl.float32, bitcast=True)
        else:
            a, b, c, d = _half(low), _half(low >> 16), _half(high), _half(high >> 16)
    else:
        a = tl.load(x + at, mask=known, other=0.0).to(tl.float32)
        b = tl.load(x + at + 1, mask=known, other=0.0).to(tl.float32)
        c = tl.load(x + at + 2, mask=known, other=0.0).to(tl.float32)
        d = tl.load(x + at + 3, mask=known, other=0.0).to(tl.float32)
    return a, b, c, d, (a + b) + (c + d)


@triton.jit
def _sum(total, word, a, b, c, d, LESS: tl.constexpr, PERMUTE: tl.constexpr):
    """The four bytes of a word, less a number, times the row's numbers, added to a total."""
    total += _number(word, 0, LESS, PERMUTE) * a
    total += _number(word, 1, LESS, PERMUTE) * b
    total += _number(word, 2, LESS, PERMUTE) * c
    total += _number(word, 3, LESS, PERMUTE) * d
    return total


@triton.jit
def _scales(at, c, known, PERMUTE: tl.constexpr):
    """Two scales and two minima of a chunk of 64 codes in Q4_K and Q5_K, see `bits.unpack_k_scales`."""
    head = _whole(at, known)
    shift = c % 2 * 16
    p = _whole(at + 4, known) >> shift
    q = _whole(at + 8, known) >> shift
    r = _whole(at + 12, known) >> shift
    s = tl.where(c < 2, p & 0x3F3F, (r & 0x0F0F) | ((p >> 2) & 0x3030))
    m = tl.where(c < 2, q & 0x3F3F, ((r >> 4) & 0x0F0F) | ((q >> 2) & 0x3030))
    scale, minimum = _half(head), _half(head >> 16)
    s0 = scale * _number(s, 0, 0, PERMUTE)
    s1 = scale * _number(s, 1, 0, PERMUTE)
    m0 = minimum * _number(m, 0, 0, PERMUTE)
    m1 = minimum * _number(m, 1, 0, PERMUTE)
    return s0, s1, m0, m1


@triton.jit
def _k(x, left, at, part, here, known, none, FIFTH: tl.constexpr, PACKED: tl.constexpr, PERMUTE: tl.constexpr):
    """Q4_K and Q5_K: a chunk has 64 codes in 32 bytes, low halves before high ones."""
    c = part // 2
    i = part % 2
    s0, s1, m0, m1 = _scales(at, c, known, PERMUTE)
    codes = at + (48 if FIFTH else 16) + c * 32 + i * 16
    left = left + c * 64 + i * 16
    p0, p1, n0, n1 = none, none, 0.0, 0.0
    for u in tl.static_range(4):
        word = _whole(codes + 4 * u, known)
        a0, b0, c0, d0, x0 = _four(x, left + 4 * u, here, PACKED)
        a1, b1, c1, d1, x1 = _four(x, left + 4 * u + 32, here, PACKED)
        n0 += x0
        n1 += x1
        low, high = word & 0x0F0F0F0F, (word >> 4) & 0x0F0F0F0F
        if FIFTH:
            top = _whole(at + 16 + i * 16 + 4 * u, known) >> (2 * c)
            low = low | ((top & 0x01010101) << 4)
            high = high | (((top >> 1) & 0x01010101) << 4)
        p0 = _sum(p0, low, a0, b0, c0, d0, 0, PERMUTE)
        p1 = _sum(p1, high, a1, b1, c1, d1, 0, PERMUTE)
    return (s0 * p0 - m0 * n0) + (s1 * p1 - m1 * n1)


@triton.jit
def _signed(at, known, PERMUTE: tl.constexpr):
    byte = tl.load(at, mask=known, other=0).to(tl.int32)
    return _number(byte ^ 128, 0, 128, PERMUTE)


@triton.jit
def _q6_k(x, left, at, part, here, known, none, PACKED: tl.constexpr, PERMUTE: tl.constexpr):
    """Each half of a block has 64 bytes of low bits and 32 of high ones, which lead to codes 32 places apart."""
    n = part // 4
    i = part % 4
    low = at + n * 64 + i * 8
    top = at + 128 + n * 32 + i * 8
    scale = _half(tl.load((at + 208).to(tl.pointer_type(tl.int16)), mask=known, other=0).to(tl.int32))
    groups = at + 192 + n * 8 + i // 2
    left = left + n * 128 + i * 8
    p, q, r, s = none, none, none, none
    for u in tl.static_range(2):
        v, w, t = _even(low + 4 * u, known), _even(low + 32 + 4 * u, known), _even(top + 4 * u, known)
        at_u = left + 4 * u
        a, b, c, d, _ = _four(x, at_u, here, PACKED)
        p = _sum(p, (v & 0x0F0F0F0F) | ((t << 4) & 0x30303030), a, b, c, d, 32, PERMUTE)
        a, b, c, d, _ = _four(x, at_u + 32, here, PACKED)
        q = _sum(q, (w & 0x0F0F0F0F) | ((t << 2) & 0x30303030), a, b, c, d, 32, PERMUTE)
        a, b, c, d, _ = _four(x, at_u + 64, here, PACKED)
        r = _sum(r, ((v >> 4) & 0x0F0F0F0F) | (t & 0x30303030), a, b, c, d, 32, PERMUTE)
        a, b, c, d, _ = _four(x, at_u + 96, here, PACKED)
        s = _sum(s, ((w >> 4) & 0x0F0F0F0F) | ((t >> 2) & 0x30303030), a, b, c, d, 32, PERMUTE)
    total = _signed(groups, known, PERMUTE) * p + _signed(groups + 2, known, PERMUTE) * q
    return scale * (total + _signed(groups + 4, known, PERMUTE) * r + _signed(groups + 6, known, PERMUTE) * s)


@triton.jit
def _q8_0(x, left, at, part, here, known, none, PACKED: tl.constexpr, PERMUTE: tl.constexpr):
    scale = _half(tl.load(at.to(tl.pointer_type(tl.int16)), mask=known, other=0).to(tl.int32))
    total = none
    for u in tl.static_range(2):
        word = _even(at + 2 + part * 8 + 4 * u, known) ^ -2139062144  # the highest bit of each byte
        a, b, c, d, _ = _four(x, left + part * 8 + 4 * u, here, PACKED)
        total = _sum(total, word, a, b, c, d, 128, PERMUTE)
    return scale * total


@triton.jit
def _fours(
    x,
    left,
    at,
    part,
    here,
    known,
    none,
    FIFTH: tl.constexpr,
    MINIMUM: tl.constexpr,
    PACKED: tl.constexpr,
    PERMUTE: tl.constexpr,
):
    """Q4_0, Q4_1, Q5_0 and Q5_1: sixteen bytes hold 32 codes, low halves before high ones."""
    head = tl.load(at.to(tl.pointer_type(tl.int16)), mask=known, other=0).to(tl.int32)
    behind: tl.constexpr = 4 if MINIMUM else 2
    less: tl.constexpr = 0 if MINIMUM else (16 if FIFTH else 8)
    if FIFTH:
        fifth = _even(at + behind, known)
        # The bits of eight neighbours, and of the eight that lie sixteen behind them.
        near, far = fifth >> (part * 8), fifth >> (16 + part * 8)
    codes = at + behind + (4 if FIFTH else 0) + part * 8
    total, numbers = none, 0.0
    for u in tl.static_range(2):
        word = _even(codes + 4 * u, known)
        a0, b0, c0, d0, x0 = _four(x, left + part * 8 + 4 * u, here, PACKED)
        a1, b1, c1, d1, x1 = _four(x, left + part * 8 + 4 * u + 16, here, PACKED)
        numbers += x0 + x1
        low, high = word & 0x0F0F0F0F, (word >> 4) & 0x0F0F0F0F
        if FIFTH:
            low = low | _spread(near >> (4 * u))
            high = high | _spread(far >> (4 * u))
        total = _sum(total, low, a0, b0, c0, d0, less, PERMUTE)
        total = _sum(total, high, a1, b1, c1, d1, less, PERMUTE)
    total = _half(head) * total
    if MINIMUM:
        least = tl.load((at + 2).to(tl.pointer_type(tl.int16)), mask=known, other=0).to(tl.int32)
        total += _half(least) * numbers
    return total


@triton.jit
def _spread(bits):
    """Four bits as the fifth bits of four bytes."""
    return ((bits & 1) << 4) | ((bits & 2) << 11) | ((bits & 4) << 18) | ((bits & 8) << 25)


@triton.jit
def _words(
    o, x, w, bias, N, K, M, sx, sw, each,
    BIAS: tl.constexpr, SPLIT: tl.constexpr, FORMAT: tl.constexpr, SIZE: tl.constexpr, GROUPS: tl.constexpr,
    BYTES: tl.constexpr, PIECES: tl.constexpr, PACKED: tl.constexpr, PERMUTE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BP: tl.constexpr,
):  # fmt: skip
    """A program makes BN features of all rows, or a share of their sums. Grid: (features / BN x shares,). K and `each`
    count pieces. Sums stay apart until the end, so that threads need each other only once.
    """
    share = tl.program_id(0) % SPLIT
    j = tl.program_id(0) // SPLIT * BN + tl.arange(0, BN)
    i = tl.arange(0, BM)
    # Pieces come first: loads whose neighbours lie apart are spread over threads from the first dimension on.
    rows = (w + j.to(tl.int64) * sw)[None, :, None]
    left = (i.to(tl.int64) * sx)[None, None, :]
    begin = share * each
    end = tl.minimum(begin + each, K)
    none = tl.zeros((BP, BN, BM), tl.float32)
    total = none
    for start in range(begin, end, BP):
        p = (start + tl.arange(0, BP))[:, None, None]
        here = (i < M)[None, None, :] & (p < end)
        known = (j < N)[None, :, None] & (p < end)
        block, part = p // PIECES, p % PIECES
        at = rows + (block * BYTES).to(tl.int64)
        to = left + block * (SIZE * GROUPS)
        if FORMAT == "q4_k" or FORMAT == "q5_k":
            total += _k(x, to, at, part, here, known, none, FORMAT == "q5_k", PACKED, PERMUTE)
        elif FORMAT == "q6_k":
            total += _q6_k(x, to, at, part, here, known, none, PACKED, PERMUTE)
        elif FORMAT == "q8_0":
            total += _q8_0(x, to, at, part, here, known, none, PACKED, PERMUTE)
        else:
            fifth: tl.constexpr = FORMAT == "q5_0" or FORMAT == "q5_1"
            minimum: tl.constexpr = FORMAT == "q4_1" or FORMAT == "q5_1"
            total += _fours(x, to, at, part, here, known, none, fifth, minimum, PACKED, PERMUTE)

    y = tl.sum(total, 0)
    if BIAS:
        y += tl.load(bias + j, mask=j < N, other=0.0).to(tl.float32)[:, None]
    to = (share.to(tl.int64) * M + i[None, :]) * N + j[:, None]
    tl.store(o + to, y.to(o.dtype.element_ty), mask=(i < M)[None, :] & (j < N)[:, None])


class Words(Shared):
    """x (few rows) @ w.T: every weight is read once, and multiplied in float32."""

    def __init__(
        self, x: Spec, sx: int, rows: int, format: Format, n: int, k: int, stride: int, bias: bool, packed: bool,
        way: tuple[int, int, int],
    ) -> None:  # fmt: skip
        bn, block, warps = way
        pieces = k // (format.size * format.groups) * PIECES[format.name]
        self.split = shares(-(-n // bn), -(-pieces // block))
        each = -(-pieces // (self.split * block)) * block
        self.split = -(-pieces // each)
        super().__init__(x.dtype, rows, n, bias)
        kind = pointer(x.dtype)
        to = kind if self.split == 1 else pointer(self.sums)
        constants: dict[str, int | str | bool] = {"BIAS": bias and self.split == 1, "SPLIT": self.split}
        constants |= {**format.constants, "PIECES": PIECES[format.name], "PACKED": packed}
        constants["PERMUTE"] = not rt.runtime.driver.emulated
        constants |= {"BM": next_power_of_two(rows), "BN": bn, "BP": block}
        types = [to, kind, "*u8", kind, "i32", "i32", "i32", "i64", "i64", "i32"]
        self.program = Program(_words, types, constants, warps=warps)
        self.program.divisible = (7,) if sx % 16 == 0 else ()
        self.program.multiples = multiples(8, stride)
        self.numbers = (n, pieces, rows, sx, stride, each)
        self.grid = (-(-n // bn) * self.split,)


def serves(x: Spec, format: Format) -> bool:
    """Whether there is such a kernel for the dtype and the format."""
    return format.name in PIECES and x.dtype in (dt.bfloat16, dt.float16, dt.float32)


def fits(x: Spec, format: Format, rows: int, way: tuple[int, int, int]) -> bool:
    """Whether a lane has registers for the sums of its share: blocks of 256 keep several at a time, and float32 rows
    lie in twice as many.
    """
    bn, block, warps = way
    sums = bn * block * next_power_of_two(rows) // (32 * warps)
    if format.groups == 1:
        return sums <= 32
    return sums <= (16 if x.dtype in dt.HALF else 8)
