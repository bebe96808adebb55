"""Sorting and what follows from it: the largest few, the k-th, the median.

Short lines are sorted by one program each, long ones by their digits. Between them runs are sorted
and merged in pairs, each element looking for its place in the other run. Where only the first few
are wanted, they are selected and then sorted; more of them are cut from runs, so that every round of
merging has half the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Spec
from ....common.slot import Slot
from ...programs.index_space import cached_by_spec
from ...programs.layouts import contiguous, last, next_power_of_two, row_stride
from ...programs.lines import Lines, key_type, lines, ordered, scratch, shared_program
from ...programs.program import pointer
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View
from ..scan.scans import lined_up
from .bitonic import Runs, most, short
from .long_rank import LongRank, LongSelect
from .radix import KEYS, MOST, PASS, PLACES, SHORT, VALUES, Radix, padded, passes
from .select import LARGEST, RANKED, Ranked, Select, selects

BLOCK = 512
# Microseconds: a launch, sorting runs of 2**20 elements, merging a round of them.
LAUNCH, RUNS, MERGE = 4.0, 40.0, 40.0


def fits(x: Spec) -> bool:
    """Whether elements can be ordered, and places counted in 32 bits."""
    return ordered(x) and x.numel < 2**31


@triton.jit
def _merge(keys2, places2, keys, places, total, m, m2, run, run2, steps, BLOCK: tl.constexpr):
    # Grid: blocks of all lines' elements. Lines have m elements in runs, m2 after merging.
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    row = e // m
    p = e % m
    mine = p // run
    left = mine % 2 == 0
    first = (mine ^ 1) * run
    last = tl.minimum(first + run, m)
    k = tl.load(keys + e, mask=there, other=0)
    place = tl.load(places + e, mask=there, other=0)

    # How many of the other run come before: ties belong to the left one.
    low = tl.minimum(first, last)
    high = last
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        other = tl.load(keys + row * m + middle, mask=there & open_, other=0)
        before = open_ & tl.where(left, other < k, other <= k)
        low = tl.where(before, middle + 1, low)
        high = tl.where(before | (open_ == 0), high, middle)
    at = p - mine * run + low - tl.minimum(first, last)

    to = row * m2 + mine // 2 * run2 + at
    kept = there & (at < run2)
    tl.store(keys2 + to, k, mask=kept)
    tl.store(places2 + to, place, mask=kept)


@triton.jit
def _collect(values, out, x, places, total, count, m, sx, BLOCK: tl.constexpr):
    # Grid: blocks of all results; the first `count` of each line.
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    row = e // count

    place = tl.load(places + row * m + e % count, mask=there, other=0).to(tl.int64)
    v = tl.load(x + row * sx + place, mask=there, other=0)

    tl.store(values + e, v, mask=there)
    tl.store(out + e, place, mask=there)


@triton.jit
def _mode(values, out, x, places, n, sx, BLOCK: tl.constexpr):
    """The smallest of the most frequent values of a sorted line, where it occurs last: how far each
    place lies in its run of equals is first at its most there. Grid: lines.
    """
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    begun = tl.zeros((), tl.int32)
    most = tl.full((), -1, tl.int32)
    where = tl.zeros((), tl.int32)
    for first in range(0, n, BLOCK):
        i = first + lane
        there = i < n
        place = tl.load(places + row * n + i, mask=there, other=0).to(tl.int64)
        before = tl.load(places + row * n + i - 1, mask=there & (i > 0), other=0).to(tl.int64)
        v = tl.load(x + row * sx + place, mask=there, other=0)
        u = tl.load(x + row * sx + before, mask=there & (i > 0), other=0)
        start = tl.where((i == 0) | (v != u), i, 0)
        start = tl.maximum(tl.associative_scan(start, 0, _larger), begun)
        into = tl.where(there, i - start, -1)
        longest = tl.max(into, 0)
        at = tl.min(tl.where(into == longest, i, n), 0)
        better = longest > most
        where = tl.where(better, at, where)
        most = tl.where(better, longest, most)
        begun = tl.max(start, 0)
    place = tl.load(places + row * n + where).to(tl.int64)
    tl.store(values + row, tl.load(x + row * sx + place))
    tl.store(out + row, place)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


def _rounds(n: int, first: int, run: int) -> list[tuple[int, int, int, int]]:
    """How a line of sorted runs is merged: elements of it before a round and after, and lengths of
    runs. Runs are cut where only the first few of a line are wanted.
    """
    rounds = []
    m, keep = n, max(next_power_of_two(first), run)
    while run < m:
        run2 = min(2 * run, keep)
        # Whole pairs keep run2 each; a run without partner, and a short pair, what they have.
        pairs, rest = divmod(m, 2 * run)
        m2 = pairs * run2 + min(rest, run2)
        rounds.append((m, m2, run, run2))
        run, m = run2, m2
    return rounds


def by_digits(ln: Lines, dtype: dt.dtype, first: int) -> bool:
    """Whether lines are sorted faster by their digits than by merging."""
    if ln.n <= max(SHORT, most(dtype)) or ln.n >= MOST:
        return False
    rounds, count = _rounds(ln.n, first, most(dtype)), passes(dtype)
    elements = ln.rows / 2**20
    merging = elements * (RUNS * ln.n + MERGE * sum(m for m, *_ in rounds)) + LAUNCH * (len(rounds) + 1)
    sorting = PASS * elements * padded(ln.n) * (count + 1) + LAUNCH * (count + 2)
    return sorting < merging


class Order:
    """The launches that order lines; `first`: how many of each line are wanted; `keys`: whether
    the keys are too.
    """

    def __init__(self, ln: Lines, dtype: dt.dtype, descending: bool, first: int, keys: bool = True) -> None:
        self.ln, self.key = ln, key_type(dtype)
        self.radix: Radix | None = None
        if by_digits(ln, dtype, first):
            self.m = first
            self.radix = Radix(ln, dtype, descending, first, KEYS if keys else PLACES)
            return
        k = pointer(self.key)
        self.runs = Runs(ln, dtype, descending, ln.n, KEYS)
        self._merge = shared_program(
            _merge, [k, "*i32", k, "*i32", "i64", "i32", "i32", "i32", "i32", "i32"], {"BLOCK": BLOCK}
        )
        self.rounds = _rounds(ln.n, first, self.runs.size)
        self.m = self.rounds[-1][1] if self.rounds else ln.n

    def __call__(self, x: View, sx: int) -> tuple[View, View]:
        """(keys, places) of each line in order; `self.m` elements of each line are there."""
        rows, n = self.ln.rows, self.ln.n
        if self.radix is not None:
            keys, places = (scratch(x.spec, rows * self.m, d) for d in (self.key, dt.int32))
            self.radix(x, sx, places=places.ptr, keys=keys.ptr)
            return keys, places
        keys, places = (scratch(x.spec, rows * n, d) for d in (self.key, dt.int32))
        self.runs(x.ptr, sx, places=places.ptr, keys=keys.ptr)
        for m, m2, run, run2 in self.rounds:
            total, steps = rows * m, run.bit_length()
            keys2, places2 = (scratch(x.spec, rows * m2, d) for d in (self.key, dt.int32))
            grid = (-(-total // BLOCK),)
            numbers = (total, m, m2, run, run2, steps)
            self._merge(grid, keys2.ptr, places2.ptr, keys.ptr, places.ptr, *numbers)
            keys, places = keys2, places2
        return keys, places


def writer(ln: Lines, dtype: dt.dtype, descending: bool, count: int) -> Callable[[View, int, int, int], None]:
    """`run(lines, their distance, values, places)` that writes the first of each line to addresses."""
    if selects(ln, dtype, count):
        return Select(ln, dtype, count, descending)
    if ln.n <= most(dtype):
        runs = Runs(ln, dtype, descending, count, VALUES)
        return lambda v, sx, values, places: runs(v.ptr, sx, values, places)
    if LARGEST < count <= ln.n // 4 and ln.n > RANKED:
        some = writer(Lines(ln.rows, count), dtype, descending, count)
        return LongSelect(ln, dtype, count, descending, some)
    if by_digits(ln, dtype, count):
        radix = Radix(ln, dtype, descending, count, VALUES)

        def sort_(v: View, sx: int, values: int, places: int) -> None:
            radix(v, sx, values, places)

        return sort_
    order = Order(ln, dtype, descending, count)
    kind, total = pointer(dtype), ln.rows * count
    collect = shared_program(_collect, [kind, "*i64", kind, "*i32", "i64", "i32", "i32", "i64"], {"BLOCK": BLOCK})

    def merge(v: View, sx: int, values: int, places: int) -> None:
        _, found = order(v, sx)
        collect((-(-total // BLOCK),), values, places, v.ptr, found.ptr, total, count, order.m, sx)

    return merge


def _first(x: Slot, dim: int, descending: bool, count: int) -> Any:
    ln = lines(x, dim)
    if not ln.rows or not count:
        return lambda outs, x: None
    write = writer(ln, x.dtype, descending, count)
    stride = row_stride(last(x.spec, dim)) if x.ndim else 1
    if stride is not None and dim >= x.ndim - 1:
        # Lines lie dense on both sides: nothing is left to arrange.
        return lambda outs, x: write(x, stride, outs[0].ptr, outs[1].ptr)

    given = x.spec
    alone = x.ndim > 0 and ln.n <= most(x.dtype) and not selects(ln, x.dtype, count)

    def build(outs: tuple[Spec, Spec]) -> Any:
        return short(given, *outs, dim, descending, count) if alone else None

    find = cached_by_spec(build)

    def run(outs: list[View], x: View) -> None:
        launch = find((outs[0].spec, outs[1].spec))
        if launch is not None:
            launch(outs[0].ptr, outs[1].ptr, x.ptr)
            return
        v, stride = ln.of(x, dim)
        lined_up(outs, dim, lambda made: write(v, stride, made[0].ptr, made[1].ptr))

    return run


@cuda("_sort", accepts=fits)
def sort(x: Slot, dim: int, descending: bool) -> Run:
    return _first(x, dim, descending, x.shape[dim] if x.ndim else 1)


@cuda("_topk", accepts=fits)
def topk(x: Slot, k: int, dim: int, largest: bool, sorted: bool) -> Run:
    return _first(x, dim, largest, k)


KTH, MEDIAN, NANMEDIAN = range(3)


def ranked(x: Slot, dim: int | None, kind: int, k: int = 0) -> Any:
    """The element of a rank in each line, or in the whole tensor, and its place."""
    flat = x.spec.like((x.numel,)) if dim is None else x.spec
    ln = lines(flat, dim or 0)
    if not ln.rows:
        return None
    if not x.dtype.is_floating_point and kind != KTH:  # integers have no NaN
        kind, k = KTH, (ln.n - 1) // 2
    pick = _by_counting if ln.n <= RANKED else _by_digits
    write = pick(ln, x.dtype, kind, k, dim is not None)

    def run(outs: list[View], x: View) -> None:
        if dim is None:
            x = contiguous(x)
            x = View(x.ptr, flat, x.storage)
        v, stride = ln.of(x, dim or 0)
        write(v, stride, outs[0].ptr, outs[-1].ptr)

    return run


def _by_counting(ln: Lines, dtype: dt.dtype, kind: int, k: int, places: bool) -> Any:
    found = Ranked(ln, dtype, kind, places)
    return lambda v, sx, values, out: found(v.ptr, sx, values, out, k)


def _by_digits(ln: Lines, dtype: dt.dtype, kind: int, k: int, places: bool) -> Any:
    found = LongRank(ln, dtype, kind, places)
    return lambda v, sx, values, out: found(v, sx, values, out, k)


def mode(x: Slot, dim: int) -> Any:
    """The most frequent value of each line, and its place."""
    ln = lines(x, dim)
    if not ln.rows:
        return None
    order = Order(ln, x.dtype, False, ln.n, keys=False)
    kind, block = pointer(x.dtype), max(16, min(BLOCK, next_power_of_two(ln.n)))
    pick = shared_program(_mode, [kind, "*i64", kind, "*i32", "i32", "i64"], {"BLOCK": block})

    def run(outs: list[View], x: View) -> None:
        v, stride = ln.of(x, dim)
        _, places = order(v, stride)
        pick((ln.rows,), outs[0].ptr, outs[1].ptr, v.ptr, places.ptr, ln.n, stride)

    return run


@cuda("_kthvalue", accepts=fits)
def kthvalue(x: Slot, k: int, dim: int, keepdim: bool) -> Run:
    return ranked(x, dim, KTH, k - 1)
