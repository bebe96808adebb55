"""Sorting long lines by their bits, eight at a time: stable, and as many passes as keys have bytes.

Elements travel as words of 64 bits, a key of 32 above the place it came from, so that moving one is
one store. A pass sorts each tile by its digits in registers, learns from the tiles before where its
own begin, and writes runs of equal digits side by side. Keys of 64 bits are sorted by their lower
half first; then the words take up the upper one. Knows lines, no operators.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two
from ...programs.lines import Lines, key_of, key_type, scratch, shared_program
from ...programs.program import Program, pointer
from ...runtime.views import View, zero
from .radix import BITS, VALUES, WORDS, _value, bits

TILE, WARPS = 2048, 4
WINDOW = 8  # tiles that are looked at together
COUNTED = 4096  # elements that are counted together


def digits(dtype: dt.dtype, above: int = 0) -> int:
    """How many digits keys have."""
    return -(-(BITS[dtype] - above) // 8)


@triton.jit
def _count(
    counts, x, n, sx, blocks,
    N: tl.constexpr, FROM: tl.constexpr, PASSES: tl.constexpr, DESCENDING: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    # Grid: lines times blocks. How often each digit of every pass occurs in a line.
    line = (tl.program_id(0) // blocks).to(tl.int64)
    i = tl.program_id(0) % blocks * T + tl.arange(0, T)
    inside = i < n
    v = tl.load(x + line * sx + i, mask=inside, other=0)
    zero = tl.zeros((), tl.int64)
    first = bits(v, zero, N, DESCENDING)
    second = bits(v, zero + 1, N, DESCENDING) if N == 64 else first
    bins = tl.arange(0, 256)
    for q in tl.static_range(PASSES):
        u = second if FROM + 8 * q >= 32 else first
        d = ((u >> ((FROM + 8 * q) % 32)) & 255).to(tl.int32)
        found = tl.histogram(d, 256, mask=inside)
        tl.atomic_add(counts + (line * PASSES + q) * 256 + bins, found, found > 0, sem="relaxed")


@triton.jit
def _before(status, own, tile, W: tl.constexpr):
    """How often each digit occurs in the tiles before. A tile tells its own counts (bit 30), then
    those up to its end (bit 31); what has neither is still to come.
    """
    bins = tl.arange(0, 256)
    mine = status + tile.to(tl.int64) * 256 + bins
    up_to = tl.zeros((256,), tl.int32)
    if tile > 0:
        tl.atomic_xchg(mine, own | 0x40000000, sem="relaxed")
        back = tl.arange(0, W)[:, None]
        open_ = up_to + 1
        last = tile - 1
        going = last >= 0
        while going:
            at = last - back
            each = status + at.to(tl.int64) * 256 + bins[None, :]
            seen = tl.load(each, mask=at >= 0, other=-0x80000000, volatile=True)
            whole = tl.min(tl.where(seen < 0, back, W), 0)
            missing = tl.max(tl.max(tl.where((seen == 0) & (back < whole[None, :]), 1, 0), 1), 0)
            if missing == 0:
                used = (back <= whole[None, :]) & (open_[None, :] != 0)
                up_to += tl.sum(tl.where(used, seen & 0x3FFFFFFF, 0), 0)
                open_ = tl.where(whole < W, 0, open_)
                last -= W
                going = tl.max(open_, 0) > 0
    tl.atomic_xchg(mine, (up_to + own) | -0x80000000, sem="relaxed")
    return up_to


@triton.jit
def _pass(
    values, places, keys, words, x, counts, taken, status, n, sx, tiles, total, p, keep,
    N: tl.constexpr, FROM: tl.constexpr, PASSES: tl.constexpr, DESCENDING: tl.constexpr,
    FRESH: tl.constexpr, SKIP: tl.constexpr, OUT: tl.constexpr, LAST: tl.constexpr,
    Q: tl.constexpr, T: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of all lines, in the order in which programs begin: those before are at work.
    bins = tl.arange(0, 256)
    t = tl.atomic_add(taken + p, 1, sem="relaxed")
    line = (t // tiles).to(tl.int64)
    tile = t % tiles
    counts += line * (PASSES * 256)

    # Where all digits of a line are the same, its pass has nothing to do.
    moved = p
    taken_up = p
    if SKIP:
        q = tl.arange(0, Q)
        each = counts + q[:, None] * 256 + bins[None, :]
        most = tl.max(tl.load(each, mask=q[:, None] < PASSES, other=0), 1)
        some = tl.where((q < PASSES) & (most < n), 1, 0)
        moved = tl.sum(tl.where(q < p, some, 0), 0)
        taken_up = tl.sum(tl.where((q < p) & (FROM + 8 * q >= 32), some, 0), 0)
        here = tl.sum(tl.where(q == p, some, 0), 0)
        if not LAST and here == 0:
            return
    bit = FROM + 8 * p
    half = (bit // 32).to(tl.int64)

    lane = tl.arange(0, T)
    i = tile * T + lane
    inside = i < n
    if SKIP:
        source = words + ((moved + 1) % 2) * total + line * n
        w = tl.load(source + i, mask=inside & (moved > 0), other=0)
        place = tl.where(moved > 0, (w & 0xFFFFFFFF).to(tl.int32), i)
        anew = moved == 0
        if N == 64:
            anew = anew | ((bit >= 32) & (taken_up == 0))
        u = bits(tl.load(x + line * sx + place, mask=inside & anew, other=0), half, N, DESCENDING)
        w = tl.where(anew, (u << 32) | place.to(tl.int64), w)
    elif FRESH:
        u = bits(tl.load(x + line * sx + i, mask=inside, other=0), half, N, DESCENDING)
        w = (u << 32) | i.to(tl.int64)
    else:
        w = tl.load(words + ((p + 1) % 2) * total + line * n + i, mask=inside, other=0)

    # Digits above places in the tile: sorted, equal digits keep their order and lie side by side.
    d = ((w >> (32 + bit % 32).to(tl.int64)) & 255).to(tl.int32)
    found = tl.histogram(d, 256, mask=inside)
    order = tl.sort(tl.where(inside, (d << 12) | lane, 0x0FFFFFFF))
    w = tl.gather(w, order & (T - 1), 0)
    d = tl.where(inside, order >> 12, 0)

    count = tl.load(counts + p * 256 + bins)
    begin = tl.cumsum(count, 0) - count - (tl.cumsum(found, 0) - found)
    begin += _before(status + (p * (total // n) + line) * tiles * 256, found, tile, W)
    rank = lane + tl.gather(begin, d, 0)

    # What was not there is sorted behind all others, so the same lanes are empty.
    place = w.to(tl.int32)
    if OUT == 0:
        tl.store(words + (moved % 2) * total + line * n + rank, w, mask=inside)
    else:
        there = inside & (rank < keep)
        to = line * keep + rank
        if OUT == 3:
            tl.store(places + to, place.to(tl.int64), mask=there)
            if N == 64:
                v = tl.load(x + line * sx + place, mask=there, other=0)
            else:
                v = _value(w, x + line * sx, place, there, N, DESCENDING)
            tl.store(values + to, v, mask=there)
        else:
            tl.store(places + to, place, mask=there)
        if OUT == 2:
            v = tl.load(x + line * sx + place, mask=there, other=0)
            k = key_of(v)
            tl.store(keys + to, ~k if DESCENDING else k, mask=there)


class Wide:
    """The launches that sort long lines. `first`: how many of each line are written; `above`: bits
    below are not looked at; `out`: what is written last.
    """

    def __init__(self, ln: Lines, dtype: dt.dtype, descending: bool, first: int, out: int, above: int = 0) -> None:
        self.ln, self.m, self.out = ln, first, out
        self.dtype, self.key, width = dtype, key_type(dtype), BITS[dtype]
        self.passes = digits(dtype, above)
        self.tiles = -(-ln.n // TILE)
        self.blocks = -(-ln.n // COUNTED)
        fixed = {"N": width, "FROM": above, "PASSES": self.passes, "DESCENDING": descending}
        x = pointer(dtype)
        types = ["*i32", x, "i32", "i64", "i32"]
        self._count = shared_program(_count, types, {**fixed, "T": COUNTED}, warps=8)
        # Integers are often small, and doubles have been floats: digits may all be the same.
        skip = self.passes > 1 and above < 32 and (width == 64 or dtype is dt.int32)
        sizes = {"Q": next_power_of_two(self.passes), "T": TILE, "W": WINDOW}
        types = [x, "*i64" if out == VALUES else "*i32", pointer(self.key), "*i64", x, "*i32", "*i32", "*i32"]
        types += ["i32", "i64", "i32", "i64", "i32", "i32"]

        def program(p: int) -> Program:
            last = p == self.passes - 1
            flags = {"FRESH": p == 0 and not skip, "SKIP": skip, "OUT": out if last else WORDS, "LAST": last}
            return shared_program(_pass, types, {**fixed, **flags, **sizes}, warps=WARPS)

        self._passes = [program(p) for p in range(self.passes)]

    def __call__(self, x: View, sx: int, values: int = 0, places: int = 0, keys: int = 0) -> View:
        """Sort; addresses say where results go. Words, if they are what is wanted, come back."""
        rows, n, tiles = self.ln.rows, self.ln.n, self.tiles
        total, each = rows * n, rows * tiles * 256
        sizes = (16, self.passes * rows * 256, self.passes * each)
        words = scratch(x.spec, 2 * total if self.passes > 1 else 2, dt.int64)
        room = scratch(x.spec, sum(sizes), dt.int32)
        zero(room)
        taken = room.ptr
        counts = taken + 4 * sizes[0]
        status = counts + 4 * sizes[1]
        self._count((rows * self.blocks,), counts, x.ptr, n, sx, self.blocks)
        outs = (values or words.ptr, places or words.ptr, keys or words.ptr)
        for p, program in enumerate(self._passes):
            program((rows * tiles,), *outs, words.ptr, x.ptr, counts, taken, status, n, sx, tiles, total, p, self.m)
        if self.out != WORDS:
            return words
        at = (self.passes - 1) % 2 * total
        return View(words.ptr + 8 * at, words.spec.like((total,)), words.storage)
