"""Short lines, and runs of longer ones, sorted in the registers of one program by a bitonic network.

An element is a word, its key above its place, so that one comparison orders by value and equal
values by place; keys of 64 bits leave no room and travel beside their places. Knows lines, no
operators.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ...programs.layouts import next_power_of_two
from ...programs.levels import Levels, begin_of, levels, lines_of
from ...programs.lines import Lines, key_of, key_type, shared_program
from ...programs.program import pointer
from ...runtime import here_count
from .radix import BITS, KEYS, PLACES, VALUES, bits

TILE = 512  # elements that a program takes at least, of several short lines
FEW = 2  # programs per processor
SMALL = 1 << 16  # elements that take no longer than a launch


@triton.jit
def _exchanged(k, p, flip, I: tl.constexpr, DIMS: tl.constexpr):
    """Keys and places, compared with those across dimension I and exchanged where out of order."""
    other = k ^ tl.xor_sum(k, DIMS - 1 - I, True)
    there = p ^ tl.xor_sum(p, DIMS - 1 - I, True)
    right = tl.reshape(tl.arange(0, 2), [1] * (DIMS - I - 1) + [2] + [1] * I)
    behind = (k > other) | ((k == other) & (p > there))
    swap = behind != (flip ^ right)
    return tl.where(swap, other, k), tl.where(swap, there, p)


@triton.jit
def sorted_pairs(k, p, SIZE: tl.constexpr, DIMS: tl.constexpr):
    """Rows of keys in order, equal ones by place. SIZE, DIMS: the logarithms of a row's elements
    and of all.
    """
    if DIMS > 0:
        a = tl.reshape(k, [2] * DIMS)
        b = tl.reshape(p, [2] * DIMS)
        for stage in tl.static_range(1, SIZE + 1):
            # Halves run in opposite directions, so that both together rise and fall once.
            if stage < SIZE:
                flip = tl.reshape(tl.arange(0, 2), [1] * (DIMS - stage - 1) + [2] + [1] * stage)
            else:
                flip = 0
            for i in tl.static_range(stage):
                a, b = _exchanged(a, b, flip, stage - 1 - i, DIMS)
        k = tl.reshape(a, k.shape)
        p = tl.reshape(b, p.shape)
    return k, p


@triton.jit
def in_order(v, place, there, N: tl.constexpr, NARROW: tl.constexpr, DESCENDING: tl.constexpr,
             SIZE: tl.constexpr, DIMS: tl.constexpr):  # fmt: skip
    """The places of rows' values in order; those that are not there come last. NARROW: places take
    16 bits, and so do keys.
    """
    if N == 64:
        k = key_of(v)
        if DESCENDING:
            k = ~k
        k = tl.where(there, k, 0x7FFFFFFFFFFFFFFF)
        _, p = sorted_pairs(k, tl.where(there, place, 0x7FFFFFFF), SIZE, DIMS)
    else:
        u = bits(v, tl.zeros((), tl.int64), N, DESCENDING)
        if NARROW:
            w = ((u.to(tl.int32) - 0x8000) << 16) | place
            p = tl.sort(tl.where(there, w, 0x7FFFFFFF)) & 0xFFFF
        else:
            w = ((u - 0x80000000) << 32) | place.to(tl.int64)
            p = tl.sort(tl.where(there, w, 0x7FFFFFFFFFFFFFFF)).to(tl.int32)
    return p


@triton.jit
def _runs(
    values, places, keys, x, rows, n, sx, runs, keep,
    N: tl.constexpr, NARROW: tl.constexpr, DESCENDING: tl.constexpr, OUT: tl.constexpr,
    R: tl.constexpr, B: tl.constexpr, SIZE: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    # Grid: runs of all lines, R at a time. OUT: what is written, as by radix passes.
    at = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)[:, None]
    row = at // runs
    base = (at % runs * B).to(tl.int32)
    lane = tl.arange(0, B)[None, :]
    i = base + lane
    there = (row < rows) & (i < n)
    v = tl.load(x + row * sx + i, mask=there, other=0)

    place = base + in_order(v, lane + base * 0, there, N, NARROW, DESCENDING, SIZE, DIMS)

    there = there & (i < keep)
    to = row * keep + i
    if OUT == 3:
        tl.store(places + to, place.to(tl.int64), mask=there)
        tl.store(values + to, tl.load(x + row * sx + place, mask=there, other=0), mask=there)
    else:
        tl.store(places + to, place, mask=there)
        if OUT == 2:
            k = key_of(tl.load(x + row * sx + place, mask=there, other=0))
            tl.store(keys + to, ~k if DESCENDING else k, mask=there)


@triton.jit
def _short(
    values, places, x, n, keep, rows, size, middle, blocks, x0, x1, x2, sx, o0, o1, o2, so,
    N: tl.constexpr, NARROW: tl.constexpr, DESCENDING: tl.constexpr, X_ROW: tl.constexpr, O_ROW: tl.constexpr,
    LEVELS: tl.constexpr, SPLIT: tl.constexpr, BM: tl.constexpr, B: tl.constexpr,
    SIZE: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    # Grid: tiles of lines of any strides, each a run.
    _, inner, outer, there = lines_of(tl.program_id(0), rows, size, blocks, SPLIT, BM)
    from_ = x + begin_of(inner, outer, middle, x0, x1, x2, LEVELS, X_ROW)[:, None]
    to = begin_of(inner, outer, middle, o0, o1, o2, LEVELS, O_ROW)[:, None]
    i = tl.arange(0, B)[None, :] + tl.zeros((BM, 1), tl.int32)
    inside = there[:, None] & (i < n)
    v = tl.load(from_ + i * sx, mask=inside, other=0)

    place = in_order(v, i, inside, N, NARROW, DESCENDING, SIZE, DIMS)

    inside = inside & (i < keep)
    to += i * so
    tl.store(places + to, place.to(tl.int64), mask=inside)
    tl.store(values + to, tl.load(from_ + place * sx, mask=inside, other=0), mask=inside)


class Short:
    """The launch that sorts short lines where they lie, and writes the first of each; `launch(values, places, x)`."""

    def __init__(self, x: Spec, out: Spec, found: Levels, dim: int, descending: bool, first: int) -> None:
        n, kind = x.shape[dim], x.dtype
        b = max(2, next_power_of_two(n))
        found.share(max(1, TILE // b))
        strides = [(*s, spec.strides[dim]) for s, spec in zip(found.steps, (x, out), strict=True)]
        self.numbers = (n, first, *found.numbers, *strides[0], *strides[1])
        held = found.bm * b
        constants = {
            "N": BITS[kind],
            "NARROW": narrow(kind, b),
            "DESCENDING": descending,
            "X_ROW": strides[0][2] == 1,
            "O_ROW": strides[1][2] == 1,
            **found.constants,
            "B": b,
            "SIZE": b.bit_length() - 1,
            "DIMS": held.bit_length() - 1,
        }
        t = pointer(kind)
        types = [t, "*i64", t, *["i32"] * 6, *["i64"] * 8]
        self.grid = (found.tiles,)
        each = 64 if found.tiles <= FEW * here_count() else 256
        self.program = shared_program(_short, types, constants, warps=max(1, min(16, held // each)))

    def __call__(self, values: int, places: int, x: int) -> None:
        self.program(self.grid, values, places, x, *self.numbers)


def short(x: Spec, out: Spec, places: Spec, dim: int, descending: bool, first: int) -> Short | None:
    """The launch, or None where lines are too long or lie too oddly."""
    if x.shape[dim] > most(x.dtype) or places.strides != out.strides:
        return None
    rest = [d for d in range(x.ndim) if d != dim]
    steps = [[s.strides[d] for d in rest] for s in (x, out)]
    found = levels([x.shape[d] for d in rest], steps, order=0)
    if found is None:
        return None
    made = Short(x, out, found, dim, descending, first)
    # A few lines across memory leave most of what is fetched unused: many are better brought together before.
    wasted = x.strides[dim] > 4 and found.bm * x.dtype.itemsize < 32
    return None if wasted and x.numel > SMALL else made


def narrow(dtype: dt.dtype, n: int) -> bool:
    """Whether key and place share 32 bits."""
    return BITS[dtype] <= 16 and n <= 1 << 15


def most(dtype: dt.dtype) -> int:
    """The longest run that one program sorts."""
    return {64: 512, 32: 1024}.get(BITS[dtype], 2048)


class Runs:
    """The launch that sorts runs of lines; with one run, lines. `first`: how many of a line are
    written where it is one run; `out`: KEYS, PLACES or VALUES.
    """

    def __init__(self, ln: Lines, dtype: dt.dtype, descending: bool, first: int, out: int) -> None:
        b = max(2, min(next_power_of_two(ln.n), most(dtype)))
        self.size, self.runs = b, -(-ln.n // b)
        r = max(1, min(TILE // b, next_power_of_two(ln.rows)))
        kind = pointer(dtype)
        types = [kind, "*i64" if out == VALUES else "*i32", pointer(key_type(dtype)), kind]
        types += ["i64", "i32", "i64", "i32", "i32"]
        constants = {
            "N": BITS[dtype],
            "NARROW": narrow(dtype, b),
            "DESCENDING": descending,
            "OUT": out,
            "R": r,
            "B": b,
            "SIZE": b.bit_length() - 1,
            "DIMS": (r * b).bit_length() - 1,
        }
        self.grid = (-(-ln.rows * self.runs // r),)
        # Each step waits for the one before. Where few programs share a processor, only more threads
        # with less to do each fill the gaps.
        each = 64 if self.grid[0] <= FEW * here_count() else 256
        self.program = shared_program(_runs, types, constants, warps=max(1, min(16, r * b // each)))
        self.keep = first if self.runs == 1 else ln.n
        self.rows, self.n = ln.rows, ln.n

    def __call__(self, x: int, sx: int, values: int = 0, places: int = 0, keys: int = 0) -> None:
        """Addresses of lines and of what is written."""
        outs = (values or places, places, keys or places)
        self.program(self.grid, *outs, x, self.rows, self.n, sx, self.runs, self.keep)


__all__ = ["KEYS", "PLACES", "VALUES", "Runs", "Short", "in_order", "most", "narrow", "short", "sorted_pairs"]
