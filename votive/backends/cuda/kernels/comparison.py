"""Membership: the tests are sorted, and every element looks for itself among them."""

from __future__ import annotations

import triton
import triton.language as tl

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import fill_view
from ..programs.layouts import contiguous, contiguous_output
from ..programs.lines import Lines, key_of, key_type, ordered, shared_program
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from .sort.sorts import Order

BLOCK = 512


@triton.jit
def _member(o, keys, x, total, n, steps, INVERT: tl.constexpr, BLOCK: tl.constexpr):
    # Grid: blocks of elements. NaN is equal to nothing.
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    v = tl.load(x + e, mask=there, other=0)
    k = key_of(v)

    low = e * 0
    high = low + n
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        below = tl.load(keys + middle, mask=there & open_, other=0) < k
        low = tl.where(open_ & below, middle + 1, low)
        high = tl.where(open_ & (below == 0), middle, high)
    inside = there & (low < n)
    found = inside & (tl.load(keys + low, mask=inside, other=0) == k) & (v == v)

    tl.store(o + e, tl.where(found, 0 if INVERT else 1, 1 if INVERT else 0), mask=there)


def _common(a: dt.dtype, b: dt.dtype) -> dt.dtype:
    """A type that holds the values of both."""
    if a is b:
        return a
    return dt.float64 if a.is_floating_point or b.is_floating_point else dt.int64


@cuda("_isin", accepts=lambda x, tests: ordered(x) and ordered(tests) and tests.numel < 2**31)
def isin(x: Slot, tests: Slot, assume_unique: bool, invert: bool) -> Run:
    n = tests.numel
    if not n:
        return lambda outs, x, tests: fill_view(outs[0], int(invert))
    kind = _common(x.dtype, tests.dtype)
    order = Order(Lines(1, n), kind, False, n)
    program = shared_program(
        _member,
        ["*u8", pointer(key_type(kind)), pointer(kind), "i64", "i64", "i32"],
        {"INVERT": invert, "BLOCK": BLOCK},
    )
    grid = (-(-x.numel // BLOCK),)

    def cast(v: View) -> View:
        if v.spec.dtype is kind:
            return contiguous(v)
        made = empty(v.spec.like(v.spec.shape, dtype=kind))
        copy_view(made, v)
        return made

    def run(outs: list[View], x: View, tests: View) -> None:
        if not x.spec.numel:
            return
        x, tests = cast(x), cast(tests)
        keys, _ = order(tests, n)
        with contiguous_output(outs[0]) as to:
            program(grid, to.ptr, keys.ptr, x.ptr, x.spec.numel, n, n.bit_length())

    return run
