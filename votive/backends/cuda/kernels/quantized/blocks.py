"""Blocks of few bits as numbers, in registers: a function for each format that kernels call. Knows no tensors.

Elements come in groups, the neighbours that share a scale. A tile is (rows, groups, elements of a group): what belongs
to a group has size 1 in its last dimension, so that scales are read once for a group and not for each element. Numbers
are `scale * code - minimum` in float32. What the bytes mean is said in `backends/common/blocks/decode.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl

from .....core import blocks
from .....core.blocks import block_dtype
from .....core.group_formats import KINDS, SIZES, group_format
from ....common.blocks.groups import FP4_VALUES, NF4_VALUES

# The values of four bits, as bytes of two words: ggml's non-linear table (kvalues_iq4nl). Those of FP4 are digits of
# one word, doubled to be integers; the fourth bit is their sign.
_IQ4_LOW = tl.constexpr(0xF6EADDCFBFAD9881 - (1 << 64))
_IQ4_HIGH = tl.constexpr(0x7159453526190D01)
_FP4 = tl.constexpr(0xC8643210)
# One 127th, as groups of eight bits have it.
_STEP = tl.constexpr(7.874015718698502e-3)
_NF4 = tl.constexpr(tuple(float(v) for v in NF4_VALUES))
_FP4_LEVELS = tl.constexpr(tuple(float(v) for v in FP4_VALUES))


@triton.jit
def _byte(at, known):
    return tl.load(at, mask=known, other=0).to(tl.int32)


@triton.jit
def _half(at, known):
    """Two bytes as a half number; blocks that hold such begin at even addresses."""
    return tl.load(at.to(tl.pointer_type(tl.float16)), mask=known, other=0.0).to(tl.float32)


@triton.jit
def _signed(byte):
    return (byte ^ 128) - 128


@triton.jit
def _fifth(at, e, known):
    """The fifth bits of 32 neighbours, in order."""
    return ((_byte(at + e // 8, known) >> (e % 8)) & 1) << 4


@triton.jit
def _nibble(at, e, known):
    """Four bits: sixteen neighbours are the low halves of sixteen bytes, the next sixteen the high ones."""
    return (_byte(at + e % 16, known) >> (e // 16 * 4)) & 15


@triton.jit
def _pair(at, i, known):
    """Two bits: planes of 32 neighbours, four of them in 32 bytes."""
    return (_byte(at + i // 128 * 32 + i % 32, known) >> (i % 128 // 32 * 2)) & 3


@triton.jit
def _iq4(q):
    word = tl.where(q < 8, _IQ4_LOW, _IQ4_HIGH)
    return _signed(((word >> ((q & 7) * 8).to(tl.int64)) & 255).to(tl.int32))


@triton.jit
def _fp4(q):
    word = tl.full((), _FP4, tl.int64)
    size = ((word >> ((q & 7) * 4).to(tl.int64)) & 15).to(tl.int32)
    return tl.where(q < 8, size, -size)


@triton.jit
def _looked_up(q, TABLE: tl.constexpr):
    """The number of four bits, by the choices that the bits are."""
    first, second, third, fourth = (q & 1) != 0, (q & 2) != 0, (q & 4) != 0, (q & 8) != 0
    a = tl.where(first, TABLE[1], TABLE[0])
    b = tl.where(first, TABLE[3], TABLE[2])
    c = tl.where(first, TABLE[5], TABLE[4])
    d = tl.where(first, TABLE[7], TABLE[6])
    low = tl.where(third, tl.where(second, d, c), tl.where(second, b, a))
    a = tl.where(first, TABLE[9], TABLE[8])
    b = tl.where(first, TABLE[11], TABLE[10])
    c = tl.where(first, TABLE[13], TABLE[12])
    d = tl.where(first, TABLE[15], TABLE[14])
    high = tl.where(third, tl.where(second, d, c), tl.where(second, b, a))
    return tl.where(fourth, high, low)


@triton.jit
def _single(at, known):
    """A float32 at an even address."""
    halves = at.to(tl.pointer_type(tl.uint16))
    low = tl.load(halves, mask=known, other=0).to(tl.int32)
    high = tl.load(halves + 1, mask=known, other=0).to(tl.int32)
    return (low | (high << 16)).to(tl.float32, bitcast=True)


@triton.jit
def _fp8(byte):
    """FP8 E4M3. The smallest numbers have no implicit one."""
    rest = byte & 127
    normal = ((rest << 20) + (120 << 23)).to(tl.float32, bitcast=True)
    size = tl.where(rest < 8, 2.0 * (normal - 0.0078125), normal)
    size = tl.where(rest == 127, float("nan"), size)
    return tl.where(byte < 128, size, -size)


@triton.jit
def _six_bits(at, g, known):
    """Scale and minimum of a group of Q4_K and Q5_K, see `bits.unpack_k_scales`."""
    a = _byte(at + g % 4, known)
    b = _byte(at + 4 + g % 4, known)
    c = _byte(at + 8 + g % 4, known)
    scale = tl.where(g < 4, a & 63, (c & 15) | (a >> 6 << 4))
    return scale, tl.where(g < 4, b & 63, (c >> 4) | (b >> 6 << 4))


@triton.jit
def _ternary(at, i, known):
    """A digit of base 3: runs of 32, 16 and 4 bytes hold five, five and four planes of digits."""
    j = tl.where(i < 160, i, tl.where(i < 240, i - 160, i - 240))
    run = tl.where(i < 160, 32, tl.where(i < 240, 16, 4))
    start = tl.where(i < 160, 0, tl.where(i < 240, 32, 48))
    n = j // run
    power = tl.where(n == 0, 1, tl.where(n == 1, 3, tl.where(n == 2, 9, tl.where(n == 3, 27, 81))))
    return (((_byte(at + start + j % run, known) * power) & 255) * 3) >> 8


@triton.jit
def numbers(w, at, g, e, known, FORMAT: tl.constexpr, GROUPS: tl.constexpr):
    """The float32 numbers of elements `e` of groups `g` in the blocks that begin `at` bytes behind `w`."""
    at = w + at
    if FORMAT == "q4_0":
        scale = _half(at, known)
        code = _nibble(at + 2, e, known) - 8
    elif FORMAT == "q4_1":
        scale = _half(at, known)
        code = _nibble(at + 4, e, known)
    elif FORMAT == "q5_0":
        scale = _half(at, known)
        code = (_nibble(at + 6, e, known) | _fifth(at + 2, e, known)) - 16
    elif FORMAT == "q5_1":
        scale = _half(at, known)
        code = _nibble(at + 8, e, known) | _fifth(at + 4, e, known)
    elif FORMAT == "q8_0":
        scale = _half(at, known)
        code = _signed(_byte(at + 2 + e, known))
    elif FORMAT == "q2_k":
        both = _byte(at + g, known)
        scale = _half(at + 80, known) * (both & 15).to(tl.float32)
        minimum = _half(at + 82, known) * (both >> 4).to(tl.float32)
        code = _pair(at + 16, g * 16 + e, known)
    elif FORMAT == "q3_k":
        low = (_byte(at + 96 + g % 8, known) >> (g // 8 * 4)) & 15
        high = (_byte(at + 104 + g % 4, known) >> (g // 4 * 2)) & 3
        scale = _half(at + 108, known) * ((low | (high << 4)) - 32).to(tl.float32)
        i = g * 16 + e
        top = (_byte(at + i % 32, known) >> (i // 32)) & 1
        code = (_pair(at + 32, i, known) | (top << 2)) - 4
    elif FORMAT == "q4_k" or FORMAT == "q5_k":
        s, m = _six_bits(at + 4, g, known)
        scale = _half(at, known) * s.to(tl.float32)
        minimum = _half(at + 2, known) * m.to(tl.float32)
        codes: tl.constexpr = 16 if FORMAT == "q4_k" else 48
        code = (_byte(at + codes + g // 2 * 32 + e, known) >> (g % 2 * 4)) & 15
        if FORMAT == "q5_k":
            code = code | (((_byte(at + 16 + e, known) >> g) & 1) << 4)
    elif FORMAT == "q6_k":
        scale = _half(at + 208, known) * _signed(_byte(at + 192 + g, known)).to(tl.float32)
        i = g * 16 + e
        low = (_byte(at + i // 128 * 64 + i % 64, known) >> (i % 128 // 64 * 4)) & 15
        code = (low | (_pair(at + 128, i, known) << 4)) - 32
    elif FORMAT == "iq4_nl":
        scale = _half(at, known)
        code = _iq4(_nibble(at + 2, e, known))
    elif FORMAT == "iq4_xs":
        low = (_byte(at + 4 + g // 2, known) >> (g % 2 * 4)) & 15
        high = (_byte(at + 2 + g // 4, known) >> (g % 4 * 2)) & 3
        scale = _half(at, known) * ((low | (high << 4)) - 32).to(tl.float32)
        code = _iq4(_nibble(at + 8 + g * 16, e, known))
    elif FORMAT == "mxfp4":
        exponent = _byte(at, known)
        # Halved, because the table is doubled; the two smallest exponents give subnormal numbers.
        bits = tl.where(exponent < 2, 0x00200000 << (exponent & 1), (exponent - 1) << 23)
        scale = bits.to(tl.float32, bitcast=True)
        code = _fp4(_nibble(at + 1, e, known))
    elif FORMAT == "absmax8" or FORMAT == "fp8":
        scale = tl.load(at.to(tl.pointer_type(tl.float32)), mask=known, other=0.0)
        byte = _byte(at + 4 + g * 32 + e, known)
        code = _signed(byte) if FORMAT == "absmax8" else _fp8(byte)
    elif FORMAT == "nf4" or FORMAT == "fp4":
        scale = tl.load(at.to(tl.pointer_type(tl.float32)), mask=known, other=0.0)
        i = g * 32 + e
        code = (_byte(at + 4 + i % (16 * GROUPS), known) >> (i // (16 * GROUPS) * 4)) & 15
        code = _looked_up(code, _NF4 if FORMAT == "nf4" else _FP4_LEVELS)
    elif FORMAT == "int2" or FORMAT == "int4" or FORMAT == "int8":
        scale = _single(at, known)
        width: tl.constexpr = 2 if FORMAT == "int2" else 4 if FORMAT == "int4" else 8
        run: tl.constexpr = 4 * width * GROUPS
        i = g * 32 + e
        code = (_byte(at + 6 + i % run, known) >> (i // run * width)) & ((1 << width) - 1)
        code = code.to(tl.float32) - _half(at + 4, known)
    elif FORMAT == "tq1_0":
        scale = _half(at + 52, known)
        code = _ternary(at, g * 16 + e, known) - 1
    else:
        tl.static_assert(FORMAT == "tq2_0", "a format without a decoder")
        scale = _half(at + 64, known)
        code = _pair(at, g * 32 + e, known) - 1
    y = scale * code.to(tl.float32)
    if FORMAT == "q4_1" or FORMAT == "q5_1":
        y += _half(at + 2, known)
    elif FORMAT == "q2_k" or FORMAT == "q4_k" or FORMAT == "q5_k":
        y -= minimum
    elif FORMAT == "absmax8":
        y *= _STEP
    return y


@triton.jit
def tile(w, row, group, known, FORMAT: tl.constexpr, SIZE: tl.constexpr, GROUPS: tl.constexpr, BYTES: tl.constexpr):
    """The numbers of groups that are counted along a row, (rows, groups, SIZE): `row` has the rows' places in bytes,
    (rows, 1, 1), `group` the groups, (1, groups, 1), and `known` what there is of both.
    """
    at = row + (group // GROUPS * BYTES).to(tl.int64)
    e = tl.arange(0, SIZE)[None, None, :]
    return numbers(w, at, group % GROUPS, e, known, FORMAT, GROUPS)


@dataclass(frozen=True)
class Format:
    """How kernels read a block: elements of a group, groups and bytes of a block, and what blocks are aligned to."""

    name: str
    size: int
    groups: int
    bytes: int
    even: int

    @property
    def constants(self) -> dict[str, int | str]:
        return {"FORMAT": self.name, "SIZE": self.size, "GROUPS": self.groups, "BYTES": self.bytes}


_SIXTEENS = frozenset(["q2_k", "q3_k", "q6_k", "tq1_0"])
# Blocks that are whole words, and are read so. The others begin at even addresses, without half numbers anywhere.
WHOLE = frozenset(["q4_k", "q5_k"])
_KNOWN = (
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
    "mxfp4",
    "tq1_0",
    "tq2_0",
)


def _read(name: str) -> Format:
    kind: block_dtype = blocks.by_name(name)
    size = 16 if name in _SIXTEENS else 32
    even = 4 if name in WHOLE else 1 if name == "mxfp4" else 2
    return Format(name, size, kind.block_size // size, kind.block_bytes, even)


def _grouped(kind: str, size: int) -> Format:
    return Format(kind, 32, size // 32, group_format(kind, size).block_bytes, 2 if KINDS[kind][1] else 4)


FORMATS: dict[str, Format] = {name: _read(name) for name in _KNOWN}
FORMATS.update({f"{kind}_g{size}": _grouped(kind, size) for kind in KINDS for size in SIZES})
