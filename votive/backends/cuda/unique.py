"""Distinct values: sorted, the first of each run of equals marked, marks counted, runs written."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from ...core import dtype as dt
from ...core.layout import Layout, Spec
from .by_rows import dense
from .data import View, empty, to_host
from .keys import Lines, scratch, shared
from .program import pointer
from .rows import cuda
from .scan import SUM, _Scan
from .sort import Order, fits

BLOCK = 512


@triton.jit
def _place(places, i, there, SORTED: tl.constexpr):
    if SORTED:
        return tl.load(places + i, mask=there, other=0).to(tl.int64)
    return i


@triton.jit
def _marks(marks, x, places, n, SORTED: tl.constexpr, BLOCK: tl.constexpr):
    # Grid: blocks of elements in order. NaN is not equal to itself: each is a value of its own.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    v = tl.load(x + _place(places, i, there, SORTED), mask=there, other=0)
    before = there & (i > 0)
    u = tl.load(x + _place(places, i - 1, before, SORTED), mask=before, other=0)
    tl.store(marks + i, tl.where((v != u) | (i == 0), 1, 0).to(tl.uint8), mask=there)


@triton.jit
def _write(
    values, inverse, starts, x, places, marks, ends, n, SORTED: tl.constexpr, BLOCK: tl.constexpr
):
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


@cuda("_unique", accepts=fits)
def unique(x: Any, dim: int | None, consecutive: bool) -> Any:
    n = x.numel
    if dim is not None or not n:
        return None
    ln = Lines(1, n)
    order = None if consecutive else Order(ln, x.dtype, False, n)
    kind = pointer(x.dtype)
    fixed = {"SORTED": not consecutive, "BLOCK": BLOCK}
    mark = shared(_marks, ["*u8", kind, "*i32", "i64"], fixed)
    write = shared(_write, [kind, "*i64", "*i64", kind, "*i32", "*u8", "*i64", "i64"], fixed)
    tally = shared(_counts, ["*i64", "*i64", "i64", "i64"], {"BLOCK": BLOCK})
    running = _Scan(SUM, ln, dt.uint8, dt.uint8, dt.int64, dt.int64)
    grid = (-(-n // BLOCK),)

    def run(outs: Any, x: View) -> list[View]:
        x = dense(x)
        places = scratch(x.spec, 1, dt.int32)
        if order is not None:
            _, places = order(x, n)
        marks, ends = scratch(x.spec, n, dt.uint8), scratch(x.spec, n, dt.int64)
        mark(grid, marks.ptr, x.ptr, places.ptr, n)
        running(ends.ptr, ends.ptr, marks, n, marks, n)
        last = np.empty(1, np.int64)
        to_host(last, ends.ptr + 8 * (n - 1))
        count = int(last[0])
        values = scratch(x.spec, count, x.spec.dtype)
        inverse = empty(Spec(Layout(x.spec.shape), dt.int64, x.spec.device))
        starts, counts = (scratch(x.spec, count, dt.int64) for _ in range(2))
        pointers = (values, inverse, starts, x, places, marks, ends)
        write(grid, *[v.ptr for v in pointers], n)
        tally((-(-count // BLOCK),), counts.ptr, starts.ptr, count, n)
        return [values, inverse, counts]

    return run
