"""Codes as tensor cores want them: several at a time, in the type of what they are multiplied with. Knows no tensors.

Formats of four to eight bits keep their codes in planes: the low halves of some bytes are neighbours, and so are the
high ones. So one load of bytes gives a tile of numbers for each plane, and no code is taken apart alone. Four bytes
become four numbers by one permutation each: as bits of 128.0 (of 32768.0 for eight bits) a code is a number already,
and what is too much goes with the minimum.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .blocks import _half, _single
from .words import _even, _scales

# Formats that lie so, and the elements of a unit, of which all planes come from the same bytes. Groups of int4 are
# one unit.
UNITS = {"q4_0": 32, "q4_1": 32, "q5_0": 32, "q5_1": 32, "q8_0": 32, "q4_k": 64, "q5_k": 64, "q6_k": 128, "int8": 32}
ONE_PLANE = frozenset(["q8_0", "int8"])

_BYTES = tl.constexpr(
    "prmt.b32 $0, $4, 0x47000000, 0x7404; prmt.b32 $1, $4, 0x47000000, 0x7414;"
    "prmt.b32 $2, $4, 0x47000000, 0x7424; prmt.b32 $3, $4, 0x47000000, 0x7434;"
)
_PLACED = (
    "prmt.b32 $0, t, 0x43000000, 0x7044; prmt.b32 $1, t, 0x43000000, 0x7144;"
    "prmt.b32 $2, t, 0x43000000, 0x7244; prmt.b32 $3, t, 0x43000000, 0x7344; }"
)
_TOPS = (
    ".reg .b32 u; .reg .b32 v; prmt.b32 u, $5, $6, 0x3340; prmt.b32 v, $7, $8, 0x4033; or.b32 t, t, u; or.b32 t, t, v;"
)
_LOW = tl.constexpr("{ .reg .b32 t; and.b32 t, $4, 0x0F0F0F0F;" + _PLACED)
_HIGH = tl.constexpr("{ .reg .b32 t; shr.b32 t, $4, 4; and.b32 t, t, 0x0F0F0F0F;" + _PLACED)
_LOW_TOPS = tl.constexpr("{ .reg .b32 t; and.b32 t, $4, 0x0F0F0F0F;" + _TOPS + _PLACED)
_HIGH_TOPS = tl.constexpr("{ .reg .b32 t; shr.b32 t, $4, 4; and.b32 t, t, 0x0F0F0F0F;" + _TOPS + _PLACED)


@triton.jit
def _bytes(raw, PERMUTE: tl.constexpr):
    """32768 and the byte."""
    if PERMUTE:
        bits = tl.inline_asm_elementwise(_BYTES, "=r,=r,=r,=r,r", [raw], tl.int32, True, 4)
        return bits.to(tl.float32, bitcast=True)
    return raw.to(tl.float32) + 32768.0


@triton.jit
def _nibbles(raw, HIGH: tl.constexpr, PERMUTE: tl.constexpr):
    """128 and half of the byte."""
    if PERMUTE:
        code: tl.constexpr = _HIGH if HIGH else _LOW
        bits = tl.inline_asm_elementwise(code, "=r,=r,=r,=r,r", [raw], tl.int32, True, 4)
        return bits.to(tl.float32, bitcast=True)
    return ((raw >> 4) if HIGH else (raw & 15)).to(tl.float32) + 128.0


@triton.jit
def _topped(raw, top, HIGH: tl.constexpr, PERMUTE: tl.constexpr):
    """128 and half of the byte below more bits, which are in their place."""
    if PERMUTE:
        code: tl.constexpr = _HIGH_TOPS if HIGH else _LOW_TOPS
        bits = tl.inline_asm_elementwise(code, "=r,=r,=r,=r,r,r,r,r,r", [raw, top], tl.int32, True, 4)
        return bits.to(tl.float32, bitcast=True)
    return (((raw >> 4) if HIGH else (raw & 15)).to(tl.int32) | top).to(tl.float32) + 128.0


@triton.jit
def unit(at, part, s, e, known, FORMAT: tl.constexpr, PERMUTE: tl.constexpr):
    """The two planes of units, float32: `at` begins their blocks, `part` is a unit's place in its block, (..., 1, 1);
    `s` and `e` count the scales of a plane and the elements of a scale. Formats of one plane give it twice.
    """
    if FORMAT == "q8_0":
        raw = tl.load(at + 2 + e, mask=known, other=0) ^ 128
        scale = _half(at, known)
        first = _bytes(raw, PERMUTE) * scale - 32896.0 * scale
        second = first
    elif FORMAT == "int8":
        raw = tl.load(at + 6 + part * 32 + e, mask=known, other=0)
        scale = _single(at, known)
        first = _bytes(raw, PERMUTE) * scale - (32768.0 + _half(at + 4, known)) * scale
        second = first
    elif FORMAT == "q4_k" or FORMAT == "q5_k":
        s0, s1, m0, m1 = _scales(at, part, known, PERMUTE)
        codes: tl.constexpr = 48 if FORMAT == "q5_k" else 16
        raw = tl.load(at + codes + part * 32 + e, mask=known, other=0)
        if FORMAT == "q5_k":
            fifth = tl.load(at + 16 + e, mask=known, other=0).to(tl.int32) >> (2 * part)
            low = _topped(raw, (fifth & 1) << 4, False, PERMUTE)
            high = _topped(raw, (fifth & 2) << 3, True, PERMUTE)
        else:
            low = _nibbles(raw, False, PERMUTE)
            high = _nibbles(raw, True, PERMUTE)
        first = low * s0 - (128.0 * s0 + m0)
        second = high * s1 - (128.0 * s1 + m1)
    elif FORMAT == "q6_k":
        raw = tl.load(at + part * 64 + s * 16 + e, mask=known, other=0)
        top = tl.load(at + 128 + part * 32 + s % 2 * 16 + e, mask=known, other=0).to(tl.int32) >> (s // 2 * 2)
        scale = _half(at + 208, known)
        groups = at + 192 + part * 8 + s
        s0 = scale * tl.load(groups.to(tl.pointer_type(tl.int8)), mask=known, other=0).to(tl.float32)
        s1 = scale * tl.load((groups + 4).to(tl.pointer_type(tl.int8)), mask=known, other=0).to(tl.float32)
        first = _topped(raw, (top & 3) << 4, False, PERMUTE) * s0 - 160.0 * s0
        second = _topped(raw, top & 48, True, PERMUTE) * s1 - 160.0 * s1
    else:
        fives: tl.constexpr = FORMAT == "q5_0" or FORMAT == "q5_1"
        minimum: tl.constexpr = FORMAT == "q4_1" or FORMAT == "q5_1"
        behind: tl.constexpr = 6 if FORMAT == "int4" else (4 if minimum else 2) + (4 if fives else 0)
        raw = tl.load(at + behind + e, mask=known, other=0)
        if fives:
            word = _even(at + behind - 4, known)
            low = _topped(raw, ((word >> e) & 1) << 4, False, PERMUTE)
            high = _topped(raw, ((word >> (e + 16)) & 1) << 4, True, PERMUTE)
        else:
            low = _nibbles(raw, False, PERMUTE)
            high = _nibbles(raw, True, PERMUTE)
        if FORMAT == "int4":
            scale = _single(at, known)
            add = -(128.0 + _half(at + 4, known)) * scale
        else:
            scale = _half(at, known)
            if minimum:
                add = _half(at + 2, known) - 128.0 * scale
            else:
                add = (-144.0 if fives else -136.0) * scale
        first = low * scale + add
        second = high * scale + add
    return first, second
