"""Choosing by truth: true values are counted per block, the counts are added up, the host learns how many there are,
and a last launch writes to memory of that size.
"""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.errors import fail
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.index_space import word
from ..programs.layouts import contiguous, contiguous_output
from ..programs.lines import scratch, shared_program
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty, to_host
from .scatter_views import apart, start

BLOCK = 2048
AT_ONCE = 4096  # counts that are added up together


@triton.jit
def _count(counts, mask, n, BLOCK: tl.constexpr):
    # Grid: blocks of the mask.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    true = tl.load(mask + i, mask=i < n, other=0) != 0
    tl.store(counts + tl.program_id(0), tl.sum(tl.where(true, 1, 0), 0))


@triton.jit
def _starts(starts, total, counts, blocks, BLOCK: tl.constexpr):
    # One program: how many true values lie before each block.
    before = tl.zeros((), tl.int64)
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        c = tl.load(counts + i, mask=i < blocks, other=0).to(tl.int64)
        tl.store(starts + i, before + tl.cumsum(c, 0) - c, mask=i < blocks)
        before += tl.sum(c, 0)
    tl.store(total, before)


@triton.jit
def _chosen(mask, starts, n, BLOCK: tl.constexpr):
    """(the places of a block, which of them are true, the number of each true one)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    true = tl.load(mask + i, mask=i < n, other=0) != 0
    one = tl.where(true, 1, 0)

    at = tl.load(starts + tl.program_id(0)) + tl.cumsum(one, 0) - one
    return i, true, at


@triton.jit
def _select(out, x, mask, starts, n, BLOCK: tl.constexpr):
    i, true, at = _chosen(mask, starts, n, BLOCK)
    tl.store(out + at, tl.load(x + i, mask=true, other=0), mask=true)


@triton.jit
def _scatter(out, mask, source, starts, n, BLOCK: tl.constexpr):
    i, true, at = _chosen(mask, starts, n, BLOCK)
    tl.store(out + i, tl.load(source + at, mask=true, other=0), mask=true)


@triton.jit
def _places(out, mask, starts, n, count, inner, s0, s1, s2, s3, DIMS: tl.constexpr, BLOCK: tl.constexpr):
    # The coordinates of some dimensions, the last one first: how often `inner` fits into the place, modulo its size.
    i, true, at = _chosen(mask, starts, n, BLOCK)
    out += at
    i = i // inner
    for d in tl.static_range(DIMS):
        size = s0 if d == 0 else s1 if d == 1 else s2 if d == 2 else s3
        tl.store(out, i % size, mask=true)
        i = i // size
        out -= count


def count_blocks(mask: View, total: int) -> View:
    """How many true values lie before each block; how many there are is written to an address."""
    n = mask.spec.numel
    blocks = max(-(-n // BLOCK), 1)
    count = shared_program(_count, ["*i32", pointer(mask.spec.dtype), "i64"], {"BLOCK": BLOCK})
    counts = scratch(mask.spec, blocks, dt.int32)
    count((blocks,), counts.ptr, mask.ptr, n)
    return add_up(counts, blocks, total)


def add_up(counts: View, blocks: int, total: int) -> View:
    """The sums of counts before each; that of all is written to an address."""
    program = shared_program(_starts, ["*i64", "*i64", "*i32", "i32"], {"BLOCK": AT_ONCE}, warps=8)
    starts = scratch(counts.spec, blocks, dt.int64)
    program((1,), starts.ptr, total, counts.ptr, blocks)
    return starts


def counted(mask: View) -> tuple[View, int]:
    """(how many true values lie before each block, how many there are); waits for the device."""
    total = scratch(mask.spec, 1, dt.int64)
    starts = count_blocks(mask, total.ptr)
    host = np.empty(1, np.int64)
    to_host(host, total.ptr)
    return starts, int(host[0])


def _grid(n: int) -> tuple[int, ...]:
    return (max(-(-n // BLOCK), 1),)


@cuda("_masked_select")
def masked_select(x: Slot, mask: Slot) -> Run:
    if word(x.dtype) is None:
        return None
    kind = word(x.dtype)
    program = shared_program(_select, [kind, kind, "*u8", "*i64", "i64"], {"BLOCK": BLOCK})  # type: ignore[list-item]

    def run(outs: list[View], x: View, mask: View) -> list[View]:
        mask, x = contiguous(mask), contiguous(x)
        starts, count = counted(mask)
        made = empty(Spec(Layout((count,)), x.spec.dtype, x.spec.device))
        if count:
            n = mask.spec.numel
            program(_grid(n), made.ptr, x.ptr, mask.ptr, starts.ptr, n)
        return [made]

    return run


def too_few(have: int, count: int) -> None:
    fail(RuntimeError, "masked_scatter", f"source has {have} elements, fewer than the {count} true values of the mask.")


@cuda("_masked_scatter", into=True)
def masked_scatter(x: Slot, mask: Slot, source: Slot) -> Run:
    if word(x.dtype) is None:
        return None
    kind = word(x.dtype)
    program = shared_program(_scatter, [kind, "*u8", kind, "*i64", "i64"], {"BLOCK": BLOCK})  # type: ignore[list-item]

    def run(outs: list[View], x: View, mask: View, source: View) -> None:
        mask = contiguous(mask)
        starts, count = counted(mask)
        if source.spec.numel < count:
            too_few(source.spec.numel, count)
        source = contiguous(apart(source, outs[0]))
        start(outs[0], x)
        if not count:
            return
        n = mask.spec.numel
        if outs[0].spec.contiguous:
            program(_grid(n), outs[0].ptr, mask.ptr, source.ptr, starts.ptr, n)
            return
        begun = contiguous(outs[0])
        with contiguous_output(outs[0]) as to:
            from ..programs.copy import copy_view

            copy_view(to, begun)
            program(_grid(n), to.ptr, mask.ptr, source.ptr, starts.ptr, n)

    return run


@cuda("_nonzero")
def nonzero(x: Slot) -> Run:
    if x.dtype.is_complex:
        return None
    types = ["*i64", pointer(x.dtype), "*i64", *["i64"] * 7]
    groups, inner = [], 1
    for end in range(x.ndim, 0, -4):
        sizes = x.shape[max(end - 4, 0) : end][::-1]
        program = shared_program(_places, types, {"DIMS": len(sizes), "BLOCK": BLOCK})
        groups.append((program, end - 1, (inner, *sizes, *[1] * (4 - len(sizes)))))
        inner *= math.prod(sizes)

    def run(outs: list[View], x: View) -> list[View]:
        x = contiguous(x)
        starts, count = counted(x)
        n = x.spec.numel
        made = empty(Spec(Layout((x.spec.ndim, count)), dt.int64, x.spec.device))
        if count:
            for program, d, numbers in groups:
                program(_grid(n), made.ptr + 8 * d * count, x.ptr, starts.ptr, n, count, *numbers)
        return [made]

    return run
