"""The element of a rank in long lines: programs count, all together, how often each digit of the wanted key occurs
among keys that agree so far, eight bits at a time from the top. Nothing is sorted. Knows lines, no operators.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from ...programs.lines import Lines, scratch, shared_program
from ...programs.program import pointer
from ...runtime import here_count
from ...runtime.views import View, zero
from .radix import BITS, bits

BLOCK = 2048  # elements that are counted together
DIGIT = 8  # bits of a digit


@triton.jit
def _unsigned(v, N: tl.constexpr):
    """Keys as numbers of 64 bits that rise with values; the upper half alone decides the sign of those of 64 bits."""
    if N == 64:
        zero_ = tl.zeros((), tl.int64)
        u = (bits(v, zero_ + 1, N, False) << 32) | bits(v, zero_, N, False)
    else:
        u = bits(v, tl.zeros((), tl.int64), N, False)
    return u


@triton.jit
def _found(counts, unknown, n, k, KIND: tl.constexpr, WIDTH: tl.constexpr, DONE: tl.constexpr, D: tl.constexpr):
    """The upper digits of the wanted key, as far as they were counted. KIND as in `select`."""
    if KIND == 1:
        # NaN comes after all others: the first of them, where there is one.
        u = tl.load(unknown)
        k = tl.where(u > 0, n - u, (n - 1) // 2)
    elif KIND == 2:
        k = tl.maximum(n - tl.load(unknown) - 1, 0) // 2
    bins = tl.arange(0, 1 << D)
    prefix = tl.zeros((), tl.int64)
    for q in tl.static_range(DONE):
        c = tl.load(counts + q * (1 << D) + bins)
        ends = tl.cumsum(c, 0)
        digit = tl.sum(tl.where(ends <= k, 1, 0), 0)
        k -= tl.sum(tl.where(bins < digit, c, 0), 0)
        prefix = (prefix << D) | digit.to(tl.int64)
    return prefix


@triton.jit
def _digits(
    counts, unknown, x, n, sx, k, blocks,
    N: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, DONE: tl.constexpr, PASSES: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: lines times programs that share a line's blocks.
    line = (tl.program_id(0) // blocks).to(tl.int64)
    counts += line * (PASSES * (1 << D))
    unknown += line
    x += line * sx
    prefix = tl.zeros((), tl.int64)
    if DONE > 0:
        prefix = _found(counts, unknown, n, k, KIND, WIDTH, DONE, D)
    bins = tl.arange(0, 1 << D)
    found = tl.zeros((1 << D,), tl.int32)
    nans = tl.zeros((BLOCK,), tl.int32)
    for start in range(tl.program_id(0) % blocks * BLOCK, n, blocks * BLOCK):
        i = start + tl.arange(0, BLOCK)
        there = i < n
        v = tl.load(x + i, mask=there, other=0)
        if DONE == 0 and KIND > 0:
            f = v if N == 64 else v.to(tl.float32)
            nans += tl.where(there & (f != f), 1, 0)
        u = _unsigned(v, N)
        shift: tl.constexpr = WIDTH - (DONE + 1) * D
        if DONE > 0:
            above: tl.constexpr = shift + D
            same = ((u >> above) & ((1 << (WIDTH - above)) - 1)) == prefix
            there = there & same
        found += tl.histogram(((u >> shift) & ((1 << D) - 1)).to(tl.int32), 1 << D, mask=there)
    tl.atomic_add(counts + DONE * (1 << D) + bins, found, mask=found > 0, sem="relaxed")
    if DONE == 0 and KIND > 0:
        many = tl.sum(nans, 0)
        tl.atomic_add(unknown, many, mask=many > 0, sem="relaxed")


@triton.jit
def _locate(
    found, counts, unknown, x, n, sx, k, blocks,
    N: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: as before. The first element with the wanted key; what is found falls with its place, and begins at zero.
    line = (tl.program_id(0) // blocks).to(tl.int64)
    x += line * sx
    key = _found(counts + line * (PASSES * (1 << D)), unknown + line, n, k, KIND, WIDTH, PASSES, D)
    for start in range(tl.program_id(0) % blocks * BLOCK, n, blocks * BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + i, mask=i < n, other=0)
        hit = (i < n) & (_unsigned(v, N) == key)
        best = tl.max(tl.where(hit, 0x7FFFFFFF - i, 0), 0)
        tl.atomic_max(found + line, best, mask=best > 0, sem="relaxed")


@triton.jit
def _taken(values, out, found, x, rows, sx, PLACES: tl.constexpr, BLOCK: tl.constexpr):
    # Grid: blocks of lines.
    line = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = 0x7FFFFFFF - tl.load(found + line, mask=line < rows, other=0x7FFFFFFF)
    tl.store(values + line, tl.load(x + line * sx + at, mask=line < rows, other=0), mask=line < rows)
    if PLACES:
        tl.store(out + line, at.to(tl.int64), mask=line < rows)


class LongRank:
    """The launches that write the element of a rank of each line, and a place where it is."""

    def __init__(self, ln: Lines, dtype: dt.dtype, kind: int, places: bool) -> None:
        t, self.ln = pointer(dtype), ln
        width = max(8, BITS[dtype])
        self.passes = width // DIGIT
        tiles = -(-ln.n // BLOCK)
        self.blocks = min(tiles, max(1, 4 * here_count() // ln.rows))
        fixed = {"N": BITS[dtype], "KIND": kind, "WIDTH": width, "PASSES": self.passes, "D": DIGIT, "BLOCK": BLOCK}
        types = ["*i32", "*i32", t, "i32", "i64", "i32", "i32"]
        self.digits = [shared_program(_digits, types, {**fixed, "DONE": q}, warps=8) for q in range(self.passes)]
        self.locate = shared_program(_locate, ["*i32", *types], fixed, warps=8)
        kinds = [t, "*i64", "*i32", t, "i64", "i64"]
        self.taken = shared_program(_taken, kinds, {"PLACES": places, "BLOCK": 128})

    def __call__(self, x: View, sx: int, values: int, out: int, k: int) -> None:
        """`x`: dense lines, `sx` apart. Addresses say where results go."""
        rows, n = self.ln.rows, self.ln.n
        aside = rows + -rows % 4
        room = scratch(x.spec, 2 * aside + (rows * self.passes << DIGIT), dt.int32)
        zero(room)
        found, unknown, counts = (room.ptr + 4 * a for a in (0, aside, 2 * aside))
        grid, numbers = (rows * self.blocks,), (n, sx, k, self.blocks)
        for count in self.digits:
            count(grid, counts, unknown, x.ptr, *numbers)
        self.locate(grid, found, counts, unknown, x.ptr, *numbers)
        self.taken((-(-rows // 128),), values, out, found, x.ptr, rows, sx)
