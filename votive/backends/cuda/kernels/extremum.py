"""Smallest and largest values and their places. NaN wins over every number, the first of equals is
named. Few long lines are cut into parts that a second launch joins.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.lines import cut, key_type, lines, ordered, scratch, shared_program, sought
from ..programs.program import pointer
from ..programs.reduction import row_reducer
from ..programs.types import Run
from ..rows import cuda
from ..runtime import here_count
from ..runtime.views import View

TILE = 2048
PART = 4096  # elements of a part, at least


@cuda("amax", accepts=ordered)
def amax(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, x.dtype, "max", compute=dt.int32 if x.dtype is dt.bool_ else None)


@cuda("amin", accepts=ordered)
def amin(x: Slot, dim: tuple[int, ...], keepdim: bool) -> Run:
    return row_reducer(x, dim, x.dtype, "min", compute=dt.int32 if x.dtype is dt.bool_ else None)


@triton.jit
def _pick(
    values,
    places,
    keys,
    x,
    rows,
    n,
    sx,
    part,
    parts,
    LARGEST: tl.constexpr,
    VALUES: tl.constexpr,
    PLACES: tl.constexpr,
    KEYS: tl.constexpr,
    HIGHEST: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    # Grid: (blocks of lines, parts of a line).
    row = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    begin = tl.program_id(1).to(tl.int64) * part
    end = tl.minimum(begin + part, n)
    lane = tl.arange(0, BN)[None, :]
    first = begin + lane
    there = (row < rows) & (first < end)
    v = tl.load(x + row * sx + first, mask=there, other=0)
    best = sought(v, LARGEST)
    at = first + row * 0
    seen = there
    for start in range(begin + BN, end, BN):
        i = start + lane
        inside = (row < rows) & (i < end)
        k = sought(tl.load(x + row * sx + i, mask=inside, other=0), LARGEST)
        better = inside & ((k > best) | (seen == 0))
        best = tl.where(better, k, best)
        at = tl.where(better, i, at)
        seen = seen | inside

    # A lane that saw nothing must not win: it takes the key of the smallest that did.
    least = tl.min(tl.where(seen, best, HIGHEST), 1)[:, None]
    best = tl.where(seen, best, least)
    top = tl.max(best, 1)
    place = tl.min(tl.where(seen & (best == top[:, None]), at, n), 1)

    line = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    good = line < rows
    if KEYS:
        tl.store(keys + line * parts + tl.program_id(1), top, mask=good)
        tl.store(places + line * parts + tl.program_id(1), place, mask=good)
    else:
        if VALUES:
            tl.store(values + line, tl.load(x + line * sx + place, mask=good, other=0), mask=good)
        if PLACES:
            tl.store(places + line, place, mask=good)


@triton.jit
def _join(
    values,
    places,
    keys,
    found,
    x,
    rows,
    sx,
    parts,
    VALUES: tl.constexpr,
    PLACES: tl.constexpr,
    HIGHEST: tl.constexpr,
    BN: tl.constexpr,
):
    # Grid: lines. Parts come in order, so the first of equal ones is the first in the line.
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BN)
    inside = i < parts
    k = tl.load(keys + row * parts + i, mask=inside, other=0)
    at = tl.load(found + row * parts + i, mask=inside, other=0)

    top = tl.max(tl.where(inside, k, tl.min(tl.where(inside, k, HIGHEST), 0)), 0)
    place = tl.min(tl.where(inside & (k == top), at, 0x7FFFFFFFFFFFFFFF), 0)

    if VALUES:
        tl.store(values + row, tl.load(x + row * sx + place))
    if PLACES:
        tl.store(places + row, place)


def _picked(x: Slot, dim: int | None, largest: bool, values: bool, places: bool) -> Any:
    flat = dim is None and x.ndim > 0
    spec = x.spec.like((x.numel,)) if flat else x.spec
    ln = lines(spec, dim or 0)
    if not ln.n:
        return None
    if not ln.rows:
        return lambda outs, x: None
    bn = min(TILE, max(next_power_of_two(ln.n), 16))
    bm = max(1, min(TILE // bn, next_power_of_two(ln.rows), 64))
    parts = 1
    if ln.rows < here_count() and ln.n > 2 * PART:
        parts = min(-(-ln.n // PART), 4 * here_count() // ln.rows, 1024)
    part, parts = cut(ln.n, parts)
    kind, key = pointer(x.dtype), pointer(key_type(x.dtype))
    highest = 2**63 - 1 if key == "*i64" else 2**31 - 1
    flags = {"LARGEST": largest, "VALUES": values, "PLACES": places}
    types = [kind, "*i64", key, kind, "i32", "i64", "i64", "i64", "i32"]
    # A part begins at a multiple of 16, so that lines are read in wide pieces.
    even = (6, 7) if ln.even(spec, dim or 0) and part % 16 == 0 else ()
    fixed = {**flags, "KEYS": parts > 1, "HIGHEST": highest, "BM": bm, "BN": bn}
    first = shared_program(_pick, types, fixed, even)
    second = shared_program(
        _join,
        [kind, "*i64", key, "*i64", kind, "i32", "i64", "i32"],
        {"VALUES": values, "PLACES": places, "HIGHEST": highest, "BN": next_power_of_two(parts)},
    )
    grid = (-(-ln.rows // bm), parts)

    def run(outs: list[View], x: View) -> None:
        if flat:
            x = contiguous(x)
            x = View(x.ptr, spec, x.storage)
        v, stride = ln.of(x, dim or 0)
        to = outs[0].ptr if values else v.ptr
        where = outs[-1].ptr if places else v.ptr
        if parts == 1:
            first(grid, to, where, v.ptr, v.ptr, ln.rows, ln.n, stride, part, parts)
            return
        keys = scratch(v.spec, ln.rows * parts, key_type(v.spec.dtype))
        found = scratch(v.spec, ln.rows * parts, dt.int64)
        first(grid, to, found.ptr, keys.ptr, v.ptr, ln.rows, ln.n, stride, part, parts)
        second((ln.rows,), to, where, keys.ptr, found.ptr, v.ptr, ln.rows, stride, parts)

    return run


@cuda("argmax", accepts=ordered)
def argmax(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _picked(x, dim, True, False, True)


@cuda("argmin", accepts=ordered)
def argmin(x: Slot, dim: int | None, keepdim: bool) -> Run:
    return _picked(x, dim, False, False, True)


@cuda("_max_dim", accepts=ordered)
def max_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _picked(x, dim, True, True, True)


@cuda("_min_dim", accepts=ordered)
def min_dim(x: Slot, dim: int, keepdim: bool) -> Run:
    return _picked(x, dim, False, True, True)
