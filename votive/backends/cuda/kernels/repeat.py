"""Indices that repeat elements."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.layouts import contiguous
from ..programs.lines import Lines, scratch, shared_program
from ..programs.program import pointer
from ..programs.reduction import row_reducer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, to_host
from .scan.scans import _Scan
from .scan.tiles import SUM

BLOCK = 512


@triton.jit
def _which(o, ends, total, n, steps, BLOCK: tl.constexpr):
    # Grid: blocks of results: the first element whose repetitions end behind each.
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    low = e * 0
    high = low + n
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = (low < high) & (e < total)
        passed = tl.load(ends + middle, mask=open_, other=0) <= e
        low = tl.where(open_ & passed, middle + 1, low)
        high = tl.where(open_ & (passed == 0), middle, high)
    tl.store(o + e, low.to(o.dtype.element_ty), mask=e < total)


@cuda("_interleave_indices")
def interleave_indices(repeats: Slot, output_size: int | None) -> Run:
    n = repeats.numel
    if not n:
        return None
    scan = _Scan(SUM, Lines(1, n), repeats.dtype, repeats.dtype, dt.int64, dt.int64)
    least = row_reducer(repeats, (0,), dt.int64, "min")
    which = shared_program(_which, [pointer(repeats.dtype), "*i64", "i64", "i64", "i32"], {"BLOCK": BLOCK})

    def run(outs: list[View], given: View) -> list[View]:
        repeats = contiguous(given)
        ends = scratch(repeats.spec, n + 1, dt.int64)
        scan(ends.ptr, ends.ptr, repeats, n, repeats, n)
        one = View(ends.ptr + 8 * n, repeats.spec.like((), dtype=dt.int64), ends.storage)
        least([one], given)
        found = np.empty(2, np.int64)
        to_host(found, ends.ptr + 8 * (n - 1))
        total, smallest = found.tolist()
        if smallest < 0:
            raise RuntimeError("repeat_interleave: repeats must not be negative.")
        if output_size not in (None, total):
            raise RuntimeError(f"repeat_interleave: output_size must be {total}, got {output_size}.")
        made = outs[0] if outs is not None else scratch(repeats.spec, total, repeats.spec.dtype)
        if total:
            which((-(-total // BLOCK),), made.ptr, ends.ptr, total, n, n.bit_length())
        return [made]

    return run
