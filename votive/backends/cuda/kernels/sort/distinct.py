"""Distinct values of a whole tensor: few are sorted and told apart by one program; of narrow types those that occur
are marked; the others are sorted, and the first of each run of equals is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from .....core import dtype as dt
from .....core.layout import Layout, Spec
from ....common.slot import Slot
from ...programs.fill import fill_view
from ...programs.layouts import contiguous, next_power_of_two
from ...programs.lines import Lines, scratch, shared_program
from ...programs.program import pointer
from ...runtime.views import View, to_host, zero
from ..masked import BLOCK, add_up, count_blocks
from .bitonic import in_order, most, narrow
from .radix import BITS, bits
from .sorts import writer


@triton.jit
def _differ(a, b):
    """Whether values differ; NaN does from itself."""
    if a.dtype.is_floating() and a.dtype.primitive_bitwidth < 32:
        a = a.to(tl.float32)
        b = b.to(tl.float32)
    return a != b


@triton.jit
def _few(
    values,
    inverse,
    counts,
    number,
    room,
    x,
    n,
    N: tl.constexpr,
    NARROW: tl.constexpr,
    B: tl.constexpr,
    SIZE: tl.constexpr,
):
    # One program. NaN is not equal to itself: each is a value of its own.
    i = tl.arange(0, B)
    there = i < n
    place = in_order(tl.load(x + i, mask=there, other=0), i, there, N, NARROW, False, SIZE, SIZE)
    v = tl.load(x + tl.where(there, place, 0), mask=there, other=0)

    tl.store(room + i, place.to(tl.int64), mask=there)
    tl.debug_barrier()
    before = tl.load(room + i - 1, mask=there & (i > 0), other=0)
    first = there & ((i == 0) | _differ(v, tl.load(x + before, mask=there, other=0)))
    which = tl.cumsum(first.to(tl.int32), 0) - 1
    count = tl.sum(first.to(tl.int32), 0)
    tl.debug_barrier()
    tl.store(room + which, i.to(tl.int64), mask=first)
    tl.debug_barrier()
    begin = tl.load(room + i, mask=i < count, other=0)
    end = tl.load(room + i + 1, mask=i + 1 < count, other=0)

    tl.store(values + which, v, mask=first)
    tl.store(inverse + place, which.to(tl.int64), mask=there)
    tl.store(counts + i, tl.where(i + 1 < count, end, n) - begin, mask=i < count)
    tl.store(number, count.to(tl.int64))


@triton.jit
def _present(flags, unknown, x, n, N: tl.constexpr, BLOCK: tl.constexpr):
    """Mark keys that occur, and count NaN. Grid: blocks. Beyond all keys: whether a zero without a sign occurs."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = i < n
    v = tl.load(x + i, mask=there, other=0)
    u = bits(v, tl.zeros((), tl.int64), N, False)
    if v.dtype.is_floating():
        f = v.to(tl.float32)
        nan = there & (f != f)
        found = tl.sum(nan.to(tl.int64), 0)
        tl.atomic_add(unknown, found, mask=found > 0, sem="relaxed")
        there = there & (nan == 0)
        tl.store(flags + (u * 0 + (1 << N)), 1, mask=there & (v.to(tl.int16, bitcast=True) == 0))
    tl.store(flags + u, 1, mask=there)


@triton.jit
def _of_keys(values, flags, starts, N: tl.constexpr, BLOCK: tl.constexpr):
    """The values of marked keys. Grid: blocks of keys."""
    T: tl.constexpr = values.dtype.element_ty
    u = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    true = tl.load(flags + u, mask=u < (1 << N), other=0) != 0
    one = true.to(tl.int32)
    at = tl.load(starts + tl.program_id(0)) + tl.cumsum(one, 0) - one
    if T.is_floating():
        plus = tl.load(flags + (1 << N)) != 0
        k = u - (1 << (N - 1))
        b = tl.where(k < 0, (-k) | (1 << (N - 1)), k)
        b = tl.where((k == 0) & (plus == 0), 1 << (N - 1), b)
        v = b.to(tl.int16).to(T, bitcast=True)
    elif N == 1 or T == tl.uint8:  # noqa: SIM300
        v = u.to(T)
    else:
        v = (u - (1 << (N - 1))).to(T)
    tl.store(values + at, v, mask=true)


@triton.jit
def _firsts(v, i, n):
    """Which elements differ from the one before."""
    here = tl.load(v + i, mask=i < n, other=0)
    before = tl.load(v + i - 1, mask=(i < n) & (i > 0), other=0)
    return here, (i < n) & ((i == 0) | _differ(here, before))


@triton.jit
def _count_firsts(counts, v, n, BLOCK: tl.constexpr):
    # Grid: blocks of elements in order.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    _, first = _firsts(v, i, n)
    tl.store(counts + tl.program_id(0), tl.sum(first.to(tl.int32), 0))


@triton.jit
def _write_firsts(
    values, inverse, begins, v, places, starts, n, INVERSE: tl.constexpr, SORTED: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    here, first = _firsts(v, i, n)
    which = tl.load(starts + tl.program_id(0)) + tl.cumsum(first.to(tl.int32), 0) - 1
    tl.store(values + which, here, mask=first)
    tl.store(begins + which, i, mask=first)
    if INVERSE:
        place = i
        if SORTED:
            place = tl.load(places + i, mask=i < n, other=0)
        tl.store(inverse + place, which, mask=i < n)


@triton.jit
def _lengths(counts, begins, count, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(begins + i, mask=i < count, other=0)
    b = tl.load(begins + i + 1, mask=i + 1 < count, other=0)
    tl.store(counts + i, tl.where(i + 1 < count, b, n) - a, mask=i < count)


def _head(v: View, count: int) -> View:
    """The first so many."""
    return View(v.ptr, Spec(Layout((count,)), v.spec.dtype, v.spec.device), v.storage)


def _fetch(ptr: int, count: int) -> list[int]:
    host = np.empty(count, np.int64)
    to_host(host, ptr)
    found: list[int] = host.tolist()
    return found


def distinct(x: Slot, consecutive: bool, inverse: bool, counts: bool) -> Any:
    """run(outs, x): values, which of them each element is, and how many there are of each; what is not wanted of the
    latter is short.
    """
    n, kind = x.numel, x.dtype
    if not consecutive and n <= most(kind):
        return _of_few(x)
    if not (consecutive or inverse or counts) and BITS[kind] <= 16:
        return _by_marks(x)
    where = None if consecutive else writer(Lines(1, n), kind, False, n)
    t = pointer(kind)
    count = shared_program(_count_firsts, ["*i32", t, "i64"], {"BLOCK": BLOCK})
    flags = {"INVERSE": inverse, "SORTED": not consecutive, "BLOCK": BLOCK}
    write = shared_program(_write_firsts, [t, "*i64", "*i64", t, "*i64", "*i64", "i64"], flags, warps=8)
    tally = shared_program(_lengths, ["*i64", "*i64", "i64", "i64"], {"BLOCK": BLOCK})
    blocks = -(-n // BLOCK)
    shape = Spec(Layout(x.shape), dt.int64, x.spec.device)

    def run(outs: list[View], x: View) -> list[View]:
        v = places = contiguous(x)
        if where is not None:
            v, places = scratch(x.spec, n, kind), scratch(x.spec, n, dt.int64)
            where(contiguous(x), n, v.ptr, places.ptr)
        each, total = scratch(x.spec, blocks, dt.int32), scratch(x.spec, 1, dt.int64)
        count((blocks,), each.ptr, v.ptr, n)
        starts = add_up(each, blocks, total.ptr)
        found = _fetch(total.ptr, 1)[0]
        values, begins = scratch(x.spec, found, kind), scratch(x.spec, found, dt.int64)
        which = scratch(x.spec, n if inverse else 1, dt.int64)
        ptrs = (values.ptr, which.ptr, begins.ptr, v.ptr, places.ptr, starts.ptr)
        write((blocks,), *ptrs, n)
        if inverse:
            which = View(which.ptr, shape, which.storage)
        if not counts:
            return [values, which, begins]
        lengths = scratch(x.spec, found, dt.int64)
        tally((-(-found // BLOCK),), lengths.ptr, begins.ptr, found, n)
        return [values, which, lengths]

    return run


def _of_few(x: Slot) -> Any:
    n, kind = x.numel, x.dtype
    b = next_power_of_two(max(n, 2))
    constants = {"N": BITS[kind], "NARROW": narrow(kind, b), "B": b, "SIZE": b.bit_length() - 1}
    t = pointer(kind)
    warps = max(1, min(16, b // 64))
    program = shared_program(_few, [t, "*i64", "*i64", "*i64", "*i64", t, "i32"], constants, warps=warps)
    shape = Spec(Layout(x.shape), dt.int64, x.spec.device)

    def run(outs: list[View], x: View) -> list[View]:
        x = contiguous(x)
        values, which, counts = (scratch(x.spec, n, d) for d in (kind, dt.int64, dt.int64))
        room = scratch(x.spec, n + 2, dt.int64)
        program((1,), values.ptr, which.ptr, counts.ptr, room.ptr, room.ptr + 16, x.ptr, n)
        found = _fetch(room.ptr, 1)[0]
        return [_head(values, found), View(which.ptr, shape, which.storage), _head(counts, found)]

    return run


def _by_marks(x: Slot) -> Any:
    n, kind, width = x.numel, x.dtype, BITS[x.dtype]
    t, keys = pointer(kind), 1 << width
    mark = shared_program(_present, ["*u8", "*i64", t, "i64"], {"N": width, "BLOCK": BLOCK})
    write = shared_program(_of_keys, [t, "*u8", "*i64"], {"N": width, "BLOCK": BLOCK})
    marks = Spec(Layout((keys,)), dt.uint8, x.spec.device)

    def run(outs: list[View], x: View) -> list[View]:
        x = contiguous(x)
        room = scratch(x.spec, 16 + keys + 16, dt.uint8)  # how many keys and NaN there are, marks
        zero(room)
        flags = View(room.ptr + 16, marks, room.storage)
        mark((-(-n // BLOCK),), flags.ptr, room.ptr + 8, x.ptr, n)
        starts = count_blocks(flags, room.ptr)
        found, unknown = _fetch(room.ptr, 2)
        values = scratch(x.spec, found + unknown, kind)
        write((-(-keys // BLOCK),), values.ptr, flags.ptr, starts.ptr)
        if unknown:
            rest = View(values.ptr + found * kind.itemsize, values.spec.like((unknown,)), values.storage)
            fill_view(rest, float("nan"))
        none = scratch(x.spec, 1, dt.int64)
        return [values, none, none]

    return run
