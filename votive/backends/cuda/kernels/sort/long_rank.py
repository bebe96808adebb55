"""The element of a rank in long lines, and the first many of them: programs count, all together, how often each digit
of the wanted key occurs among keys that agree so far, eight bits at a time from the top. Only what is wanted in order
is sorted. Knows lines, no operators.
"""

from __future__ import annotations

from typing import Any

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
def _unsigned(v, N: tl.constexpr, DESCENDING: tl.constexpr):
    """Keys as unsigned numbers in words of 64 bits, which rise, or fall, with values."""
    if N == 64:
        zero_ = tl.zeros((), tl.int64)
        u = (bits(v, zero_ + 1, N, DESCENDING) << 32) | bits(v, zero_, N, DESCENDING)
    else:
        u = bits(v, tl.zeros((), tl.int64), N, DESCENDING)
    return u


@triton.jit
def _found(counts, unknown, n, k, KIND: tl.constexpr, WIDTH: tl.constexpr, DONE: tl.constexpr, D: tl.constexpr):
    """(the upper digits of the wanted key, as far as they were counted; its rank among those that agree in them). KIND
    as in `select`.
    """
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
    return prefix, k


@triton.jit
def _digits(
    counts, unknown, x, n, sx, k, blocks,
    N: tl.constexpr, DESCENDING: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, DONE: tl.constexpr,
    PASSES: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: lines times programs that share a line's blocks.
    line = (tl.program_id(0) // blocks).to(tl.int64)
    counts += line * (PASSES * (1 << D))
    unknown += line
    x += line * sx
    prefix = tl.zeros((), tl.int64)
    if DONE > 0:
        prefix, _ = _found(counts, unknown, n, k, KIND, WIDTH, DONE, D)
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
        u = _unsigned(v, N, DESCENDING)
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
def _equals(
    x, counts, unknown, n, sx, k, tiles,
    N: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """(line, tile, places, values, which have the wanted key, the wanted rank among these)."""
    line = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    key, rank = _found(counts + line * (PASSES * (1 << D)), unknown + line, n, k, KIND, WIDTH, PASSES, D)
    i = tile * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + line * sx + i, mask=i < n, other=0)
    return line, tile, i, v, tl.where((i < n) & (_unsigned(v, N, False) == key), 1, 0), rank


@triton.jit
def _count_equals(
    each, counts, unknown, x, n, sx, k, tiles,
    N: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of all lines.
    line, tile, _i, _v, equal, _rank = _equals(x, counts, unknown, n, sx, k, tiles, N, KIND, WIDTH, PASSES, D, BLOCK)
    tl.store(each + line * tiles + tile, tl.sum(equal, 0))


@triton.jit
def _pick(
    values, out, each, counts, unknown, x, n, sx, k, tiles,
    N: tl.constexpr, KIND: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr,
    PLACES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: as before. Equal elements are ranked by their places.
    line, tile, i, v, equal, rank = _equals(x, counts, unknown, n, sx, k, tiles, N, KIND, WIDTH, PASSES, D, BLOCK)
    before = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, tile, BLOCK):
        j = first + tl.arange(0, BLOCK)
        before += tl.load(each + line * tiles + j, mask=j < tile, other=0)
    hit = (equal != 0) & (tl.sum(before, 0) + tl.cumsum(equal, 0) - 1 == rank)
    tl.store(values + line + i * 0, v, mask=hit)
    if PLACES:
        tl.store(out + line + i * 0, i.to(tl.int64), mask=hit)


class _Counting:
    """The launches that count digits, and what they are told of lines."""

    def __init__(self, ln: Lines, dtype: dt.dtype, kind: int, descending: bool = False) -> None:
        self.ln, t = ln, pointer(dtype)
        width = max(8, BITS[dtype])
        self.passes = width // DIGIT
        self.tiles = -(-ln.n // BLOCK)
        self.blocks = min(self.tiles, max(1, 4 * here_count() // ln.rows))
        self.fixed = {"N": BITS[dtype], "KIND": kind, "WIDTH": width, "PASSES": self.passes, "D": DIGIT}
        self.fixed["BLOCK"] = BLOCK
        self.types = ["*i32", "*i32", t, "i32", "i64", "i32", "i32"]
        flags = {**self.fixed, "DESCENDING": descending}
        self.digits = [shared_program(_digits, self.types, {**flags, "DONE": q}, warps=8) for q in range(self.passes)]

    def count(self, x: View, sx: int, k: int) -> tuple[View, int, int]:
        """(memory, addresses in it: how many NaN each line has, counts of digits)."""
        rows = self.ln.rows
        aside = rows + -rows % 4
        room = scratch(x.spec, aside + (rows * self.passes << DIGIT), dt.int32)
        zero(room)
        counts = room.ptr + 4 * aside
        for count in self.digits:
            count((rows * self.blocks,), counts, room.ptr, x.ptr, self.ln.n, sx, k, self.blocks)
        return room, room.ptr, counts


class LongRank(_Counting):
    """The launches that write the element of a rank of each line, and its place."""

    def __init__(self, ln: Lines, dtype: dt.dtype, kind: int, places: bool) -> None:
        super().__init__(ln, dtype, kind)
        self.each = shared_program(_count_equals, ["*i32", *self.types], self.fixed, warps=8)
        types = [pointer(dtype), "*i64", "*i32", *self.types]
        self.pick = shared_program(_pick, types, {**self.fixed, "PLACES": places}, warps=8)

    def __call__(self, x: View, sx: int, values: int, out: int, k: int) -> None:
        """`x`: dense lines, `sx` apart. Addresses say where results go."""
        rows, n = self.ln.rows, self.ln.n
        _room, unknown, counts = self.count(x, sx, k)  # held until all is launched
        each = scratch(x.spec, rows * self.tiles, dt.int32)
        grid, numbers = (rows * self.tiles,), (n, sx, k, self.tiles)
        self.each(grid, each.ptr, counts, unknown, x.ptr, *numbers)
        self.pick(grid, values, out, each.ptr, counts, unknown, x.ptr, *numbers)


@triton.jit
def _tile_of(x, counts, n, sx, k, tiles, N: tl.constexpr, DESCENDING: tl.constexpr, WIDTH: tl.constexpr,
             PASSES: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """(line, tile, places, values, which come before the k-th key and which are equal to it, how many of those are
    wanted).
    """
    line = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    key, rank = _found(counts + line * (PASSES * (1 << D)), counts, n, k - 1, 0, WIDTH, PASSES, D)
    i = tile * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + line * sx + i, mask=i < n, other=0)
    u = _unsigned(v, N, DESCENDING)
    top: tl.constexpr = -0x8000000000000000 if N == 64 else 0  # words of 64 bits are compared with a sign
    above = tl.where((i < n) & ((u ^ top) < (key ^ top)), 1, 0)
    equal = tl.where((i < n) & (u == key), 1, 0)
    return line, tile, i, v, above, equal, rank + 1


@triton.jit
def _count_first(
    each, counts, x, n, sx, k, tiles,
    N: tl.constexpr, DESCENDING: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of all lines.
    line, tile, _i, _v, above, equal, _need = _tile_of(
        x, counts, n, sx, k, tiles, N, DESCENDING, WIDTH, PASSES, D, BLOCK
    )
    each += line * (2 * tiles)
    tl.store(each + tile, tl.sum(above, 0))
    tl.store(each + tiles + tile, tl.sum(equal, 0))


@triton.jit
def _write_first(
    values, places, each, counts, x, n, sx, k, tiles,
    N: tl.constexpr, DESCENDING: tl.constexpr, WIDTH: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    # Grid: as before. Those wanted of a line, in the order in which they stand there.
    line, tile, i, v, above, equal, need = _tile_of(x, counts, n, sx, k, tiles, N, DESCENDING, WIDTH, PASSES, D, BLOCK)
    each += line * (2 * tiles)
    higher = tl.zeros((BLOCK,), tl.int32)
    same = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, tile, BLOCK):
        j = first + tl.arange(0, BLOCK)
        higher += tl.load(each + j, mask=j < tile, other=0)
        same += tl.load(each + tiles + j, mask=j < tile, other=0)
    ties = tl.sum(same, 0) + tl.cumsum(equal, 0) - equal
    at = tl.sum(higher, 0) + tl.cumsum(above, 0) - above + tl.minimum(ties, need)
    taken = (above != 0) | ((equal != 0) & (ties < need))
    to = line * k + at
    tl.store(values + to, v, mask=taken)
    tl.store(places + to, i, mask=taken)


@triton.jit
def _renamed(out, places, total, k, BLOCK: tl.constexpr):
    """Places in a line instead of those among what was selected. Grid: blocks of results."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    at = tl.load(out + e, mask=there, other=0)
    place = tl.load(places + e // k * k + at, mask=there, other=0)
    tl.store(out + e, place.to(tl.int64), mask=there)


class LongSelect(_Counting):
    """The launches that write the k first of long lines in order: they are found by counting, brought together and
    sorted by `order(lines, their distance, values, places)`.
    """

    def __init__(self, ln: Lines, dtype: dt.dtype, k: int, descending: bool, order: Any) -> None:
        super().__init__(ln, dtype, 0, descending)
        self.k, self.order, self.dtype = k, order, dtype
        t = pointer(dtype)
        fixed = {key: v for key, v in self.fixed.items() if key != "KIND"} | {"DESCENDING": descending}
        numbers = ["i32", "i64", "i32", "i32"]
        self.each = shared_program(_count_first, ["*i32", "*i32", t, *numbers], fixed, warps=8)
        self.write = shared_program(_write_first, [t, "*i32", "*i32", "*i32", t, *numbers], fixed, warps=8)
        self.rename = shared_program(_renamed, ["*i64", "*i32", "i64", "i32"], {"BLOCK": 512})

    def __call__(self, x: View, sx: int, values: int, out: int) -> None:
        """`x`: dense lines, `sx` apart. Addresses say where results go."""
        rows, n, k = self.ln.rows, self.ln.n, self.k
        _room, _, counts = self.count(x, sx, k - 1)  # held until all is launched
        each = scratch(x.spec, 2 * rows * self.tiles, dt.int32)
        found, places = scratch(x.spec, rows * k, self.dtype), scratch(x.spec, rows * k, dt.int32)
        grid, numbers = (rows * self.tiles,), (n, sx, k, self.tiles)
        self.each(grid, each.ptr, counts, x.ptr, *numbers)
        self.write(grid, found.ptr, places.ptr, each.ptr, counts, x.ptr, *numbers)
        self.order(found, k, values, out)
        total = rows * k
        self.rename((-(-total // 512),), out, places.ptr, total, k)
