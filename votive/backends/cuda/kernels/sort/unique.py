"""Distinct values and rows: sorted, the first of each run of equals marked, marks counted, runs
written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.layouts import contiguous, last
from ...programs.lines import Lines, scratch, shared_program
from ...programs.program import pointer
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, empty, to_device, to_host
from ..scan.scans import _Scan
from ..scan.tiles import SUM
from .distinct import distinct
from .sorts import Order, fits

BLOCK = 512


@triton.jit
def _place(places, i, there, SORTED: tl.constexpr):
    if SORTED:
        return tl.load(places + i, mask=there, other=0).to(tl.int64)
    return i


@triton.jit
def _write(values, inverse, starts, x, places, marks, ends, n, SORTED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    place = _place(places, i, there, SORTED)
    which = tl.load(ends + i, mask=there, other=1) - 1
    first = there & (tl.load(marks + i, mask=there, other=0) != 0)

    tl.store(inverse + place, which, mask=there)
    tl.store(values + which, tl.load(x + place, mask=first, other=0), mask=first)
    tl.store(starts + which, i, mask=first)


@triton.jit
def _counts(counts, starts, count, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(starts + i, mask=i < count, other=0)
    b = tl.load(starts + i + 1, mask=i + 1 < count, other=0)
    tl.store(counts + i, tl.where(i + 1 < count, b, n) - a, mask=i < count)


@triton.jit
def _column(keys, x, order, n, columns, c, BLOCK: tl.constexpr):
    """One column of all rows, in the order found so far."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(order + i, mask=i < n, other=0).to(tl.int64)
    tl.store(keys + i, tl.load(x + row * columns + c, mask=i < n, other=0), mask=i < n)


@triton.jit
def _reorder(to, order, places, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(places + i, mask=i < n, other=0).to(tl.int64)
    tl.store(to + i, tl.load(order + place, mask=i < n, other=0), mask=i < n)


@triton.jit
def _differ(marks, x, places, n, columns, SORTED: tl.constexpr, BLOCK: tl.constexpr):
    """Which rows differ from the one before. Grid: blocks of rows in order."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    before = (i < n) & (i > 0)
    a = _place(places, i, i < n, SORTED) * columns
    b = _place(places, i - 1, before, SORTED) * columns
    mark = i == 0
    for c in range(columns):
        v, u = tl.load(x + a + c, mask=before, other=0), tl.load(x + b + c, mask=before, other=0)
        mark = mark | (v != u)
    tl.store(marks + i, tl.where(mark, 1, 0).to(tl.uint8), mask=i < n)


@triton.jit
def _take(values, x, places, starts, total, columns, SORTED: tl.constexpr, BLOCK: tl.constexpr):
    """The first row of each run of equals."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    first = tl.load(starts + e // columns, mask=there, other=0)
    row = _place(places, first, there, SORTED)
    tl.store(values + e, tl.load(x + row * columns + e % columns, mask=there, other=0), mask=there)


def _by_rows(x: Slot, dim: int, consecutive: bool) -> Any:
    """Rows in the order of their first column, of their second where that is equal, and so on: the
    last column is sorted first, and every sort keeps the order of equals.
    """
    spec = last(x.spec, dim) if x.ndim else x.spec.like((1,))
    order_ = (spec.ndim - 1, *range(spec.ndim - 1))
    shape = tuple(spec.shape[d] for d in order_)
    permuted = spec.like(shape, strides=tuple(spec.strides[d] for d in order_))
    n, columns = shape[0], x.numel // shape[0]
    ln, kind, fixed = Lines(1, n), pointer(x.dtype), {"BLOCK": BLOCK}
    flags = {"SORTED": not consecutive, **fixed}
    order = Order(ln, x.dtype, False, n, keys=False)
    column = shared_program(_column, [kind, kind, "*i32", "i64", "i64", "i64"], fixed)
    reorder = shared_program(_reorder, ["*i32", "*i32", "*i32", "i64"], fixed)
    differ = shared_program(_differ, ["*u8", kind, "*i32", "i64", "i64"], flags)
    write = shared_program(_write, ["*u8", "*i64", "*i64", "*u8", "*i32", "*u8", "*i64", "i64"], flags)
    take = shared_program(_take, [kind, kind, "*i32", "*i64", "i64", "i64"], flags)
    tally = shared_program(_counts, ["*i64", "*i64", "i64", "i64"], fixed)
    running = _Scan(SUM, ln, dt.uint8, dt.uint8, dt.int64, dt.int64)
    grid = (-(-n // BLOCK),)
    begin = np.arange(n, dtype=np.int32)

    def sorted_rows(v: View) -> View:
        places = scratch(v.spec, n, dt.int32)
        to_device(places.ptr, begin)
        for c in range(columns - 1, -1, -1):
            keys, after = scratch(v.spec, n, x.dtype), scratch(v.spec, n, dt.int32)
            column(grid, keys.ptr, v.ptr, places.ptr, n, columns, c)
            _, moved = order(keys, n)
            reorder(grid, after.ptr, places.ptr, moved.ptr, n)
            places = after
        return places

    def run(outs: list[View], x: View) -> list[View]:
        v = contiguous(View(x.ptr, permuted, x.storage))
        places = scratch(v.spec, 1, dt.int32) if consecutive else sorted_rows(v)
        marks, ends = scratch(v.spec, n, dt.uint8), scratch(v.spec, n, dt.int64)
        differ(grid, marks.ptr, v.ptr, places.ptr, n, columns)
        running(ends.ptr, ends.ptr, marks, n, marks, n)
        count = _last(ends, n)
        inverse, starts, counts = (scratch(v.spec, k, dt.int64) for k in (n, count, count))
        spare = scratch(v.spec, max(n, count), dt.uint8)
        pointers = [p.ptr for p in (spare, inverse, starts, marks, places, marks, ends)]
        write(grid, *pointers, n)
        tally((-(-count // BLOCK),), counts.ptr, starts.ptr, count, n)
        found = empty(permuted.like((count, *shape[1:])))
        total = count * columns
        take((-(-total // BLOCK),), found.ptr, v.ptr, places.ptr, starts.ptr, total, columns)
        values = empty(x.spec.like(_with(x.spec.shape or (1,), dim, count)))
        back = (*range(1, len(shape)),)
        at = [d - 1 for d in back]
        at.insert(dim, -1)
        steps = found.spec.strides
        moved = tuple(steps[0] if d < 0 else steps[d + 1] for d in at)
        copy_view(values, View(found.ptr, values.spec.like(strides=moved), found.storage))
        return [values, inverse, counts]

    return run


def _of_nothing(x: Slot, dim: int | None) -> Any:
    where = x.spec.device
    shapes = ((0,), x.shape, (0,)) if dim is None else (x.shape, (0,), (0,))
    kinds = (x.dtype, dt.int64, dt.int64)

    def run(outs: list[View], x: View) -> list[View]:
        return [empty(Spec(Layout(s), d, where)) for s, d in zip(shapes, kinds, strict=True)]

    return run


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])


def _last(ends: View, n: int) -> int:
    """The last of running sums: a number that the host waits for."""
    found = np.empty(1, np.int64)
    to_host(found, ends.ptr + 8 * (n - 1))
    return int(found[0])


@cuda("_unique", accepts=fits)
def unique(x: Slot, dim: int | None, consecutive: bool, inverse: bool, counts: bool) -> Run:
    if not x.numel:
        return _of_nothing(x, dim)
    if dim is not None:
        return _by_rows(x, dim, consecutive)
    return distinct(x, consecutive, inverse, counts)
