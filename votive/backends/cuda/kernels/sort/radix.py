"""Sorting long lines by their bits, four at a time: stable, and as many passes as keys have digits.

Elements travel as words of 64 bits, a key of 32 above the place it came from, so that moving one is
one store. A pass counts digits in each tile, learns from the tiles before where its own begin, and
writes. Keys of 64 bits are sorted by their lower half first; then the words take up the upper one.
Knows lines, no operators.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from ...programs.layouts import next_power_of_two
from ...programs.lines import Lines, key_of, key_type, scratch, shared_program
from ...programs.program import Program, pointer
from ...runtime.views import View, zero

SHORT = 1024  # shorter lines leave most of a tile empty
PASS = 14.0  # microseconds of a pass over 2**20 elements
THREADS = 128  # of a tile
EACH = 16  # elements that a thread orders in its registers: four bits count those before
REGISTERS = 168  # of a thread: so many that three tiles share a processor
WINDOW = 32  # tiles that are looked at together
COUNTED = 512  # columns of 8 elements that are counted together
MOST = 2**30  # elements of a line: two bits of its counts tell what they count

# Bits of keys. Fewer bits take fewer passes.
BITS = {
    dt.bool_: 1,
    dt.uint8: 8,
    dt.int8: 8,
    dt.int16: 16,
    dt.float16: 16,
    dt.bfloat16: 16,
    dt.int32: 32,
    dt.float32: 32,
    dt.int64: 64,
    dt.float64: 64,
}
WORDS, PLACES, KEYS, VALUES = range(4)


@triton.jit
def _add4(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def _add2(a, b, c, d):
    return a + c, b + d


@triton.jit
def _bytes(lower, upper, SHIFT: tl.constexpr, end):
    """Counts in four bits each, every other one, as bytes of the rows' last element."""
    word = (((upper >> SHIFT) & 0x0F0F0F0F).to(tl.int64) << 32) | ((lower >> SHIFT) & 0x0F0F0F0F).to(tl.int64)
    return tl.sum(tl.where(end, word, 0), 0)


@triton.jit
def _fields(ones, twos):
    """Sixteen counts in bytes, those of even digits and of odd ones, as 16 bits each: word `d & 3`
    has the count of digit d in its field `d >> 2`.
    """
    m: tl.constexpr = 0x00FF00FF00FF00FF
    return ones & m, twos & m, (ones >> 8) & m, (twos >> 8) & m


@triton.jit
def _field(d, a, b, c, e):
    """The count of digit d."""
    word = tl.where(d & 1 != 0, tl.where(d & 2 != 0, e, b), tl.where(d & 2 != 0, c, a))
    return (word >> ((d >> 2) * 16).to(tl.int64)).to(tl.int32) & 0xFFFF


@triton.jit
def bits(v, half, N: tl.constexpr, DESCENDING: tl.constexpr):
    """Keys as unsigned numbers, or a half of them: 0 the lower one."""
    if N == 64:
        k = key_of(v)
        if DESCENDING:
            k = ~k
        u = ((k ^ -0x8000000000000000) >> (half * 32).to(tl.int64)) & 0xFFFFFFFF
    else:
        if N == 1:
            u = (v != 0).to(tl.int64)
        elif N == 32:
            u = key_of(v).to(tl.int64) + 0x80000000
        elif v.dtype.is_floating():
            b = v.to(tl.int16, bitcast=True).to(tl.int32)
            size = b & 0x7FFF
            k = tl.where(b < 0, -size, size)
            infinity: tl.constexpr = 0x7C00 if v.dtype == tl.float16 else 0x7F80
            u = (tl.where(size > infinity, 0x7FFF, k) + 0x8000).to(tl.int64)
        elif v.dtype == tl.uint8:
            u = v.to(tl.int64)
        else:
            u = v.to(tl.int64) + (1 << (N - 1))
        if DESCENDING:
            u = ((1 << N) - 1) - u
    return u


@triton.jit
def _count(
    counts,
    x,
    n,
    sx,
    blocks,
    N: tl.constexpr,
    FROM: tl.constexpr,
    PASSES: tl.constexpr,
    DESCENDING: tl.constexpr,
    R: tl.constexpr,
):
    # Grid: lines times blocks. How often each digit of every pass occurs in a line.
    low: tl.constexpr = 0x0F0F0F0F0F0F0F0F
    line = (tl.program_id(0) // blocks).to(tl.int64)
    i = tl.program_id(0) % blocks * (8 * R)
    i = i + tl.arange(0, 8)[:, None] * R + tl.arange(0, R)[None, :]
    v = tl.load(x + line * sx + i, mask=i < n, other=0)
    zero = tl.zeros((), tl.int64)
    first = bits(v, zero, N, DESCENDING)
    second = bits(v, zero + 1, N, DESCENDING) if N == 64 else first
    bins = tl.arange(0, 16)
    for q in tl.static_range(PASSES):
        u = second if FROM + 4 * q >= 32 else first
        d = (u >> ((FROM + 4 * q) % 32)) & 15
        # Eight at most: four bits hold the count of a digit.
        nibbles = tl.sum(tl.where(i < n, tl.full(d.shape, 1, tl.int64) << (d * 4), 0), 0)
        a, b, c, e = tl.reduce(_fields(nibbles & low, (nibbles >> 4) & low), 0, _add4)
        found = _field(bins, a, b, c, e)
        tl.atomic_add(counts + (line * PASSES + q) * 16 + bins, found, found > 0, sem="relaxed")


@triton.jit
def _before(status, own, tile, W: tl.constexpr):
    """How often each digit occurs in the tiles before. A tile tells its own counts (bit 30), then
    those up to its end (bit 31); what has neither is still to come.
    """
    bins = tl.arange(0, 16)
    mine = status + tile.to(tl.int64) * 16 + bins
    up_to = tl.zeros((16,), tl.int32)
    if tile > 0:
        tl.atomic_xchg(mine, own | 0x40000000, sem="relaxed")
        back = tl.arange(0, W)[:, None]
        open_ = up_to + 1
        last = tile - 1
        going = last >= 0
        while going:
            at = last - back
            each = status + at.to(tl.int64) * 16 + bins[None, :]
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
    Q: tl.constexpr, G: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of all lines, in the order in which programs begin: those before are at work.
    T: tl.constexpr = G * R
    bins = tl.arange(0, 16)
    t = tl.atomic_add(taken + p, 1, sem="relaxed")
    line = (t // tiles).to(tl.int64)
    tile = t % tiles
    counts += line * (PASSES * 16)

    # Where all digits of a line are the same, its pass has nothing to do.
    moved = p
    taken_up = p
    if SKIP:
        q = tl.arange(0, Q)
        each = counts + q[:, None] * 16 + bins[None, :]
        most = tl.max(tl.load(each, mask=q[:, None] < PASSES, other=0), 1)
        some = tl.where((q < PASSES) & (most < n), 1, 0)
        moved = tl.sum(tl.where(q < p, some, 0), 0)
        taken_up = tl.sum(tl.where((q < p) & (FROM + 4 * q >= 32), some, 0), 0)
        here = tl.sum(tl.where(q == p, some, 0), 0)
        if not LAST and here == 0:
            return
    bit = FROM + 4 * p
    half = (bit // 32).to(tl.int64)

    i = tile * T + tl.arange(0, T)
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
    w = tl.where(inside, w, -1)

    # Threads look at some neighbours each. Before an element: equals of its thread, in four bits
    # for each digit; of earlier threads, in sixteen bits.
    g = tl.arange(0, G)[:, None]
    r = tl.arange(0, R)[None, :]
    d = ((w >> (32 + bit % 32).to(tl.int64)) & 15).to(tl.int8)
    own = tl.reshape(tl.gather(d, tl.reshape(r * G + g, (T,)), 0), (G, R)).to(tl.int32)
    shift = (own & 7) * 4
    one = tl.full((G, R), 1, tl.int32) << shift
    upper = own >= 8
    lower_one = tl.where(upper, 0, one)
    upper_one = tl.where(upper, one, 0)
    lower, higher = tl.associative_scan((lower_one, upper_one), 0, _add2)
    rank = ((tl.where(upper, higher, lower) - one) >> shift) & 15
    # Sixteen of one digit are too many for four bits: the last is added where there are eight.
    end = g == G - 1
    a, b, c, e = _fields(
        _bytes(lower - lower_one, higher - upper_one, 0, end) + _bytes(lower_one, upper_one, 0, end),
        _bytes(lower - lower_one, higher - upper_one, 4, end) + _bytes(lower_one, upper_one, 4, end),
    )
    sums = tl.reduce((a, b, c, e), 0, _add4)
    found = _field(bins, sums[0], sums[1], sums[2], sums[3])
    a2, b2, c2, e2 = tl.associative_scan((a, b, c, e), 0, _add4)
    a, b, c, e = (a2 - a)[None, :], (b2 - b)[None, :], (c2 - c)[None, :], (e2 - e)[None, :]
    # Ranks in a tile leave room for the digit beside them.
    rank = tl.reshape(tl.trans(rank + _field(own, a, b, c, e) + (own << 16)), (T,))

    count = tl.load(counts + p * 16 + bins)
    begin = tl.cumsum(count, 0) - count
    begin += _before(status + (p * (total // n) + line) * tiles * 16, found, tile, W)
    rank = (rank & 0xFFFF) + tl.gather(begin, rank >> 16, 0)

    place = w.to(tl.int32)
    there = place >= 0
    if OUT == 0:
        tl.store(words + (moved % 2) * total + line * n + rank, w, mask=there)
    else:
        there = there & (rank < keep)
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


@triton.jit
def _value(w, x, place, there, N: tl.constexpr, DESCENDING: tl.constexpr):
    """The value of a word; what its key does not tell, zeros' signs and NaNs, is looked up."""
    T: tl.constexpr = x.dtype.element_ty
    u = (w >> 32) & 0xFFFFFFFF
    if DESCENDING:
        u = ((1 << N) - 1) - u
    if T.is_floating():
        if N == 32:
            k = (u - 0x80000000).to(tl.int32)
            same = (k == 0) | (k == 0x7FFFFFFF)
            v = (k ^ ((k >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
            v = tl.where(same, tl.load(x + place, mask=there & same, other=0), v)
        else:
            v = tl.load(x + place, mask=there, other=0)
    elif N == 1 or T == tl.uint8:  # noqa: SIM300
        v = u.to(T)
    else:
        v = (u - (1 << (N - 1))).to(T)
    return v


def passes(dtype: dt.dtype, above: int = 0) -> int:
    """How many digits keys have."""
    return -(-(BITS[dtype] - above) // 4)


def padded(n: int) -> int:
    """Elements of the tiles of a line."""
    return n + -n % (EACH * THREADS)


class Radix:
    """The launches that sort long lines. `first`: how many of each line are written; `above`: bits
    below are not looked at; `out`: what is written last.
    """

    def __init__(self, ln: Lines, dtype: dt.dtype, descending: bool, first: int, out: int, above: int = 0) -> None:
        self.ln, self.m, self.out = ln, first, out
        self.dtype, self.key, width = dtype, key_type(dtype), BITS[dtype]
        self.passes = passes(dtype, above)
        self.tiles = padded(ln.n) // (EACH * THREADS)
        self.blocks = -(-ln.n // (8 * COUNTED))
        fixed = {"N": width, "FROM": above, "PASSES": self.passes, "DESCENDING": descending}
        x = pointer(dtype)
        types = ["*i32", x, "i32", "i64", "i32"]
        self._count = shared_program(_count, types, {**fixed, "R": COUNTED})
        # Integers are often small, and doubles have been floats: digits may all be the same.
        skip = self.passes > 1 and above < 32 and (width == 64 or dtype is dt.int32)
        sizes = {"Q": next_power_of_two(self.passes), "G": EACH, "R": THREADS, "W": WINDOW}
        types = [
            x,
            "*i64" if out == VALUES else "*i32",
            pointer(self.key),
            "*i64",
            x,
            "*i32",
            "*i32",
            "*i32",
            "i32",
            "i64",
            "i32",
            "i64",
            "i32",
            "i32",
        ]

        def program(p: int) -> Program:
            last = p == self.passes - 1
            flags = {"FRESH": p == 0 and not skip, "SKIP": skip, "OUT": out if last else WORDS, "LAST": last}
            few: dict[str, Any] = {} if last else {"maxnreg": REGISTERS}
            constants = {**fixed, **flags, **sizes}
            return shared_program(_pass, types, constants, warps=THREADS // 32, **few)

        self._passes = [program(p) for p in range(self.passes)]

    def __call__(self, x: View, sx: int, values: int = 0, places: int = 0, keys: int = 0) -> View:
        """Sort; addresses say where results go. Words, if they are what is wanted, come back."""
        rows, n, tiles = self.ln.rows, self.ln.n, self.tiles
        total, each = rows * n, rows * tiles * 16
        sizes = (16, self.passes * rows * 16, self.passes * each)
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
