"""Binary search and counting."""

from __future__ import annotations

from functools import lru_cache

import triton
import triton.language as tl

from ....core import dtype as dt
from ....core.errors import fail
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..cpu_fallback import fetch
from ..device import math as m
from ..programs.copy import copy_view
from ..programs.fill import fill_view
from ..programs.index_space import IndexSpace
from ..programs.layouts import contiguous, next_power_of_two
from ..programs.lines import ordered, shared_program
from ..programs.program import pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime import here_count
from ..runtime.faults import faults
from ..runtime.views import View, empty, zero
from .index import reach

BLOCK = 512
TALLIED = 1024  # values that are counted together
FEW = 512  # bins that a program counts into by itself
_NARROW = (dt.float32, *dt.HALF)
_INTS = (dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8)


@triton.jit
def _search(
    o,
    bounds,
    sorter,
    fault,
    x,
    total,
    n,
    size,
    steps,
    RIGHT: tl.constexpr,
    ROWS: tl.constexpr,
    SORTER: tl.constexpr,
    W: tl.constexpr,
    BLOCK: tl.constexpr,
):
    # Grid: blocks of values. ROWS: each line of values has bounds of its own. SORTER: bounds are
    # not in order, but their places in order are given.
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = e < total
    v = tl.load(x + e, mask=there, other=0).to(W)

    base = e // n * size if ROWS else e * 0
    low = e * 0
    high = low + size
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        at = middle
        if SORTER:
            at = tl.load(sorter + base + middle, mask=there & open_, other=0).to(tl.int64)
            bad = there & open_ & ((at < 0) | (at >= size))
            tl.store(fault + tl.zeros_like(bad.to(tl.int32)), 1, mask=bad)
            at = tl.where(bad, 0, at)
        b = tl.load(bounds + base + at, mask=there & open_, other=0).to(W)
        # A comparison with NaN fails, which moves right.
        stays = (b > v) if RIGHT else (b >= v)
        low = tl.where(open_ & (stays == 0), middle + 1, low)
        high = tl.where(open_ & stays, middle, high)

    tl.store(o + e, low.to(o.dtype.element_ty), mask=there)


@cuda("_searchsorted", accepts=lambda *specs: all(map(ordered, specs)))
def searchsorted(bounds: Slot, x: Slot, sorter: Slot | None, right: bool, dtype: dt.dtype) -> Run:
    if bounds.dtype in _INTS and x.dtype in _INTS:
        wide = tl.int64
    else:
        both = bounds.dtype in _NARROW and x.dtype in _NARROW
        wide = tl.float32 if both else tl.float64
    if not x.numel:
        return lambda outs, bounds, x, *rest: None
    size = bounds.shape[-1]
    program = shared_program(
        _search,
        [pointer(dtype), pointer(bounds.dtype), "*i64", "*i32", pointer(x.dtype), "i64", "i64", "i64", "i32"],
        {"RIGHT": right, "ROWS": bounds.ndim > 1, "SORTER": sorter is not None, "W": wide, "BLOCK": BLOCK},
    )
    fault = faults.place(RuntimeError, "searchsorted: a sorter index is out of range.")
    n = x.shape[-1] if x.ndim else 1
    steps = size.bit_length()
    grid = (-(-x.numel // BLOCK),)

    def run(outs: list[View], bounds: View, x: View, sorter: View | None = None) -> None:
        out = outs[0]
        to = out if out.spec.contiguous else empty(out.spec.like(out.spec.shape))
        bounds, x = contiguous(bounds), contiguous(x)
        places = bounds if sorter is None else contiguous(sorter)
        ptrs = (to.ptr, bounds.ptr, places.ptr, fault, x.ptr)
        program(grid, *ptrs, x.spec.numel, n, size, steps)
        if to is not out:
            copy_view(out, to)

    return run


@triton.jit
def _tally(
    o, x, n, sx, count, low, high, FLOATS: tl.constexpr, UNIT: tl.constexpr, BINS: tl.constexpr, BLOCK: tl.constexpr
):
    # Grid: programs that share the blocks. Each counts by itself first: all would add at the same few places.
    # FLOATS: values fall into bins between low and high; else they are bins.
    bins = tl.arange(0, BINS)
    found = tl.zeros((BINS,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        good = i < n
        v = tl.load(x + (i if UNIT else i.to(tl.int64) * sx), mask=good, other=0)
        if FLOATS:
            v = v.to(low.dtype)
            good = good & (v >= low) & (v <= high)
            v = m.f_div((v - low) * count, high - low + v * 0)
            # The last bin includes its right edge.
            v = tl.minimum(tl.where(good, v, 0).to(tl.int32), count - 1)
        found += tl.histogram(v.to(tl.int32), BINS, mask=good)
    tl.atomic_add(o + bins, found.to(tl.int64), mask=(bins < count) & (found > 0), sem="relaxed")


class _Tally:
    """The launch that counts into few bins: `tally(counts, x, stride, bins, low, high)`."""

    def __init__(self, x: Slot, stride: int, bins: int) -> None:
        wide = "fp64" if x.dtype is dt.float64 else "fp32"
        size = max(16, next_power_of_two(bins))
        constants = {"FLOATS": x.dtype.is_floating_point, "UNIT": stride == 1, "BINS": size, "BLOCK": TALLIED}
        types = ["*i64", pointer(x.dtype), "i32", "i64", "i32", wide, wide]
        self.program = shared_program(_tally, types, constants)
        self.grid, self.numbers = (min(-(-x.numel // TALLIED), 8 * here_count()),), (x.numel, stride, bins)

    def __call__(self, counts: int, x: int, low: float = 0.0, high: float = 0.0) -> None:
        self.program(self.grid, counts, x, *self.numbers, low, high)


def _few(x: Slot, bins: int) -> bool:
    """Whether each program counts by itself."""
    return bins <= FEW and x.numel < 2**31 - 2**24


@cuda("_histc", accepts=lambda x: x.dtype in (*_NARROW, dt.float64))
def histc(x: Slot, bins: int, low: float, high: float) -> Run:
    if x.numel and _few(x, bins):
        tally = _Tally(x, 1, bins)

        def run_few(outs: list[View], x: View) -> None:
            counts = empty(Spec(Layout((bins,)), dt.int64, x.spec.device))
            zero(counts)
            x = contiguous(x)
            tally(counts.ptr, x.ptr, low, high)
            copy_view(outs[0], counts)

        return run_few
    wide = "fp64" if x.dtype is dt.float64 else "fp32"
    p = IndexSpace(x.shape, [x.strides])
    b = p.arg("bins", bins)
    types = {"o": "*i64", "x": pointer(x.dtype), "low": wide, "high": wide}
    add = p.kernel(
        "histc",
        types,
        [
            f"v = {p.load('x', 0)}.to(low.dtype) + (r * 0 + n * 0).to(low.dtype)",
            "good = inside & (v >= low) & (v <= high)",
            f"i = m.f_div((v - low) * {b}, high - low + v * 0).to(tl.int64)",
            # The last bin includes its right edge.
            f"i = tl.where(good, tl.minimum(i, {b} - 1), 0)",
            "tl.atomic_add(o + i, 1, mask=good, sem='relaxed')",
        ],
    )

    def run(outs: list[View], x: View) -> None:
        out = outs[0]
        counts = empty(Spec(Layout((bins,)), dt.int64, out.spec.device))
        fill_view(counts, 0)
        add(counts.ptr, x.ptr, low, high)
        copy_view(out, counts)

    return run


@cuda("_histogram", accepts=lambda x, *rest: x.dtype in (*_NARROW, dt.float64))
def histogram(x: Slot, edges: tuple[Slot, ...], weight: Slot | None) -> Run:
    """Every point finds its bin along each dimension by search, and adds to the bin of them all."""
    n = x.shape[0]
    wide = "tl.float64" if x.dtype is dt.float64 else "tl.float32"
    steps = [(1,)] if weight is None else [(1,), weight.strides]
    p = IndexSpace((n,), steps, apart=(0,), reach=reach(x))
    total = dt.int64 if weight is None else dt.float64
    types = {"o": pointer(total), "x": pointer(x.dtype)} | ({} if weight is None else {"w": pointer(weight.dtype)})
    i = f"({p.at(0)} + r * 0 + n * 0)"
    lines = [f"at = {i}.to(tl.int64) * 0", "good = inside"]
    for d, e in enumerate(edges):
        types[f"e{d}"] = pointer(e.dtype)
        bins, step = p.arg(f"bins{d}", e.numel - 1), p.arg(f"es{d}", e.strides[0])
        place = f"{i} * {p.arg('xs0', x.strides[0])} + {d} * {p.arg('xs1', x.strides[1])}"
        lines += [
            f"v = tl.load(x + {place}, mask=inside, other=0).to({wide})",
            f"good = good & (v >= tl.load(e{d}).to({wide}))",
            f"good = good & (v <= tl.load(e{d} + {bins} * {step}).to({wide}))",
            "low = at * 0",
            f"high = low + {bins} + 1",
            f"for _ in range({p.arg(f'steps{d}', e.numel.bit_length())}):",
            "    middle = (low + high) // 2",
            "    open_ = low < high",
            f"    b = tl.load(e{d} + middle * {step}, mask=open_, other=0).to({wide})",
            "    stays = b > v",
            "    low = tl.where(open_ & (stays == 0), middle + 1, low)",
            "    high = tl.where(open_ & stays, middle, high)",
            # The last bin includes its right edge.
            f"at = at * {bins} + tl.minimum(tl.maximum(low - 1, 0), {bins} - 1)",
        ]
    one = "1" if weight is None else f"{p.load('w', 1)}"
    lines += ["kind = o.dtype.element_ty"]
    lines += [
        f"y = ({one} + (r * 0 + n * 0)).to(kind)"
        if weight is None
        else (f"y = {one}.to(kind) + (r * 0 + n * 0).to(kind)")
    ]
    lines += ["tl.atomic_add(o + at, y, mask=good, sem='relaxed')"]
    add = p.kernel("histogram", types, lines)
    shape = tuple(e.numel - 1 for e in edges)

    def run(outs: list[View], x: View, edges: list[View], weight: View | None = None) -> None:
        totals = empty(Spec(Layout(shape), total, x.spec.device))
        fill_view(totals, 0)
        extra = () if weight is None else (weight.ptr,)
        add(totals.ptr, x.ptr, *extra, *[e.ptr for e in edges])
        copy_view(outs[0], totals)

    return run


@cuda("_bincount", accepts=lambda x, *weights: x.dtype in _INTS)
def bincount(x: Slot, weights: Slot | None, minlength: int) -> Run:
    from ..programs.reduction import row_reducer

    if weights is not None and weights.dtype not in (dt.float32, dt.float64, *_INTS, *dt.HALF):
        return None
    largest = row_reducer(x, (0,), dt.int64, "max")
    smallest = row_reducer(x, (0,), dt.int64, "min")
    kind = dt.int64 if weights is None else dt.float64
    steps = [x.strides] if weights is None else [x.strides, weights.strides]
    p = IndexSpace(x.shape, steps)
    types = {"o": pointer(kind), "x": pointer(x.dtype)}
    if weights is not None:
        types["w"] = pointer(weights.dtype)
    one = "1" if weights is None else f"{p.load('w', 1)}.to(tl.float64) + (r * 0 + n * 0)"
    add = p.kernel(
        "bincount",
        types,
        [
            f"i = {p.load('x', 0)}.to(tl.int64) + r * 0 + n * 0",
            f"tl.atomic_add(o + i, {one}, mask=inside, sem='relaxed')",
        ],
    )
    result = None if weights is None else weights.dtype

    slot = x
    tallies = lru_cache(16)(lambda bins: _Tally(slot, slot.strides[0], bins))

    def run(outs: list[View], x: View, weights: View | None = None) -> list[View]:
        def made(count: int, dtype: dt.dtype) -> View:
            return empty(Spec(Layout((count,)), dtype, x.spec.device))

        if not x.spec.numel:
            counts = made(minlength, dt.int64)
            fill_view(counts, 0)
            return [counts]
        ends = empty(Spec(Layout((2,)), dt.int64, x.spec.device))
        scalar = Spec(Layout(()), dt.int64, x.spec.device)
        smallest([View(ends.ptr, scalar, ends.storage)], x)
        largest([View(ends.ptr + 8, scalar, ends.storage)], x)
        low, high = fetch(ends).tolist()
        if low < 0:
            fail(RuntimeError, "bincount", f"values must not be negative, got {low}.")
        counts = made(max(high + 1, minlength), kind)
        fill_view(counts, 0)
        extra = () if weights is None else (weights.ptr,)
        if weights is None and _few(slot, high + 1):
            tallies(high + 1)(counts.ptr, x.ptr)
        else:
            add(counts.ptr, x.ptr, *extra)
        if result is None or result is kind:
            return [counts]
        cast = made(counts.spec.numel, result)
        copy_view(cast, counts)
        return [cast]

    return run
