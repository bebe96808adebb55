"""Sums and means of the rows of each bag: one program per bag and block of columns, in order."""

from __future__ import annotations

import triton
import triton.language as tl

from ...common.slot import Slot
from ..programs.layouts import contiguous, contiguous_output, next_power_of_two
from ..programs.lines import shared_program
from ..programs.program import pointer
from ..programs.types import Run, floats, wide
from ..rows import cuda
from ..runtime.faults import faults
from ..runtime.views import View

BLOCK = 512


@triton.jit
def _bag(
    o,
    fault,
    early,
    weight,
    indices,
    offsets,
    factors,
    rows,
    columns,
    n,
    given,
    sr,
    sc,
    padding,
    MEAN: tl.constexpr,
    FACTORS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # Grid: (bags, blocks of columns).
    b = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(offsets + b).to(tl.int64)
    end = tl.load(offsets + b + 1, mask=b + 1 < given, other=0).to(tl.int64)
    end = tl.where(b + 1 < given, end, n)
    wrong = ((b == 0) & (begin != 0)) | (begin > end) | (end > n)
    tl.store(early, 1, mask=wrong)
    begin = tl.maximum(begin, 0)
    acc = tl.zeros((BLOCK,), WIDE)
    count = tl.zeros((), tl.int32)
    for k in range(begin, tl.minimum(end, n)):
        i = tl.load(indices + k).to(tl.int64)
        bad = (i < 0) | (i >= rows)
        tl.store(fault, 1, mask=bad)
        used = (bad == 0) & (i != padding)
        v = tl.load(weight + i * sr + c * sc, mask=(c < columns) & used, other=0.0).to(WIDE)
        if FACTORS:
            v = v * tl.load(factors + k).to(WIDE)
        acc += v
        count += tl.where(used, 1, 0)
    if MEAN:
        acc = acc / tl.maximum(count, 1).to(WIDE)
    tl.store(o + b.to(tl.int64) * columns + c, acc.to(o.dtype.element_ty), mask=c < columns)


@cuda("_bag", accepts=lambda weight, *rest: floats(weight))
def bag(
    weight: Slot,
    indices: Slot,
    offsets: Slot,
    factors: Slot | None,
    mean: bool,
    padding: int,
    by_frequency: bool,
    ends: bool,
) -> Run:
    rows, columns = weight.shape
    count = offsets.numel - int(ends)
    if not count or not columns:
        return lambda outs, *given: None
    block = min(BLOCK, max(next_power_of_two(columns), 16))
    given = pointer(weight.dtype if factors is None else factors.dtype)
    program = shared_program(
        _bag,
        [
            pointer(weight.dtype),
            "*i32",
            "*i32",
            pointer(weight.dtype),
            pointer(indices.dtype),
            pointer(offsets.dtype),
            given,
            "i64",
            "i32",
            "i64",
            "i32",
            "i64",
            "i64",
            "i64",
        ],
        {"MEAN": mean, "FACTORS": factors is not None, "WIDE": wide(weight.dtype), "BLOCK": block},
    )
    fault = faults.place(RuntimeError, f"embedding_bag: an index is out of range for {rows} rows.")
    early = faults.place(RuntimeError, "embedding_bag: offsets must begin with 0, not fall and lie inside the indices.")
    grid = (count, -(-columns // block))

    def run(outs: list[View], weight: View, indices: View, offsets: View, factors: View | None = None) -> None:
        indices, offsets = contiguous(indices), contiguous(offsets)
        factors = weight if factors is None else contiguous(factors)
        s = weight.spec.strides
        with contiguous_output(outs[0]) as out:
            program(
                grid,
                out.ptr,
                fault,
                early,
                weight.ptr,
                indices.ptr,
                offsets.ptr,
                factors.ptr,
                rows,
                columns,
                indices.spec.numel,
                offsets.spec.numel,
                s[0],
                s[1],
                padding,
            )

    return run


@triton.jit
def _argmax(o, fault, weight, indices, bags, rows, columns, n, steps, sr, sc, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    # Grid: (bags, blocks of columns). The indices of a bag are neighbours: two searches find them.
    b = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    begin, end = _below(bags, b, n, steps), _below(bags, b + 1, n, steps)
    best = tl.full((BLOCK,), -float("inf"), WIDE)
    row = tl.full((BLOCK,), -1, tl.int64)
    for k in range(begin, end):
        i = tl.load(indices + k).to(tl.int64)
        bad = (i < 0) | (i >= rows)
        tl.store(fault, 1, mask=bad)
        v = tl.load(weight + i * sr + c * sc, mask=(c < columns) & (bad == 0), other=0.0).to(WIDE)
        # Of equal values the first counts; nothing is larger than a NaN that comes first.
        better = (v > best) | (k == begin)
        best = tl.where(better, v, best)
        row = tl.where(better, i, row)
    tl.store(o + b.to(tl.int64) * columns + c, row, mask=c < columns)


@triton.jit
def _below(bags, b, n, steps):
    """How many indices belong to bags before b."""
    low = n * 0
    high = n
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        below = tl.load(bags + middle, mask=open_, other=0) < b
        low = tl.where(open_ & below, middle + 1, low)
        high = tl.where(open_ & (below == 0), middle, high)
    return low


@cuda("_bag_argmax", accepts=lambda weight, *rest: floats(weight))
def bag_argmax(weight: Slot, indices: Slot, bags: Slot, count: int) -> Run:
    rows, columns = weight.shape
    if not count or not columns:
        return lambda outs, *given: None
    block = min(BLOCK, max(next_power_of_two(columns), 16))
    program = shared_program(
        _argmax,
        [
            "*i64",
            "*i32",
            pointer(weight.dtype),
            pointer(indices.dtype),
            pointer(bags.dtype),
            "i64",
            "i32",
            "i64",
            "i32",
            "i64",
            "i64",
        ],
        {"WIDE": wide(weight.dtype), "BLOCK": block},
    )
    fault = faults.place(IndexError, f"embedding_bag: an index is out of range for {rows} rows.")
    grid = (count, -(-columns // block))
    n = indices.numel

    def run(outs: list[View], weight: View, indices: View, bags: View) -> None:
        s = weight.spec.strides
        indices, bags = contiguous(indices), contiguous(bags)
        with contiguous_output(outs[0]) as out:
            ptrs = (out.ptr, fault, weight.ptr, indices.ptr, bags.ptr)
            program(grid, *ptrs, rows, columns, n, n.bit_length(), s[0], s[1])

    return run
