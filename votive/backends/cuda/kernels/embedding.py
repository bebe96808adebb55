"""Rows of a table: reading them, and adding into them."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from ....core import determinism
from ....core import dtype as dt
from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..programs.fill import fill_view
from ..programs.index_space import IndexSpace, added, cached_by_spec, word
from ..programs.layouts import contiguous, contiguous_output, next_power_of_two
from ..programs.lines import Lines, key_type
from ..programs.program import Program, pointer
from ..programs.types import Run, wide
from ..rows import cuda
from ..runtime.views import View, empty
from .index import SUMS, checked, reach, reported, spot, summed
from .sort.sorts import Order


@cuda("_embedding")
def embedding(weight: Slot, indices: Slot, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    if word(weight.dtype) is None:
        return None
    shape = (*indices.shape, weight.shape[1])
    out = weight.spec.like(shape)
    columns = (0,) * indices.ndim + (weight.strides[1],)
    p = IndexSpace(shape, [out.strides, (*indices.strides, 0), columns], reach=reach(weight))
    body = [
        *checked(p, "i", p.load("index", 1), weight.shape[0]),
        f"v = tl.load(x + {spot(p, 2, f'''i * {p.arg('xs', weight.strides[0])}''')}, mask=inside, other=0)",
        p.store("v"),
    ]
    kind = word(weight.dtype)
    types = {"o": kind, "x": kind, "index": pointer(indices.dtype), "fault": "*i32"}
    run = p.kernel("embedding", types, body)
    fault = reported("embedding", 0, weight.shape[0], IndexError)
    return lambda outs, weight, indices: run(outs[0].ptr, weight.ptr, indices.ptr, fault)


def _counter(indices: Slot) -> Any:
    """`count(counts, indices)`: how often each row is named."""
    p = IndexSpace(indices.shape, [indices.strides])
    return p.kernel(
        "count",
        {"o": "*i32", "index": pointer(indices.dtype)},
        [f"i = {p.load('index', 0)} + r * 0 + n * 0", "tl.atomic_add(o + i, 1, mask=inside, sem='relaxed')"],
    )


@triton.jit
def _rows_in_order(
    o, g, keys, places, n, columns, padding, BY_FREQUENCY: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """The rows of one index, added in the order they stand. Grid: (indices in order, blocks of
    columns); only the first of equal ones has something to do.
    """
    i = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + i)
    before = tl.load(keys + i - 1, mask=i > 0, other=0)
    first = ((i == 0) | (before != key)) & (key != padding)
    total = tl.zeros((BLOCK,), WIDE)
    j = i
    more = first
    while more:
        place = tl.load(places + j).to(tl.int64)
        total += tl.load(g + place * columns + c, mask=c < columns, other=0.0).to(WIDE)
        j += 1
        after = tl.load(keys + j, mask=j < n, other=0)
        more = (j < n) & (after == key)
    if BY_FREQUENCY:
        total = total / tl.maximum(j - i, 1).to(WIDE)
    to = o + key.to(tl.int64) * columns + c
    tl.store(to, total.to(o.dtype.element_ty), mask=(c < columns) & first)


def _in_order(g: Slot, indices: Slot, padding: int, by_frequency: bool) -> Any:
    """add(out, g, indices): equal indices are brought together by sorting, which keeps their order,
    and each row of the table is written once.
    """
    n, columns = indices.numel, g.shape[-1]
    if not n or not columns:
        return lambda out, g, indices: fill_view(out, 0)
    order = Order(Lines(1, n), indices.dtype, False, n)
    block = min(1024, max(16, next_power_of_two(columns)))
    kinds = [pointer(g.dtype), pointer(g.dtype), pointer(key_type(indices.dtype)), "*i32"]
    constants = {"BY_FREQUENCY": by_frequency, "WIDE": wide(g.dtype), "BLOCK": block}
    program = Program(_rows_in_order, [*kinds, "i64", "i64", "i64"], constants)

    def run(out: View, g: View, indices: View) -> None:
        keys, places = order(indices, n)
        with contiguous_output(out) as to:
            fill_view(to, 0)
            grid = (n, -(-columns // block))
            program(grid, to.ptr, g.ptr, keys.ptr, places.ptr, n, columns, padding)

    return run


@cuda("_embedding_backward")
def embedding_backward(g: Slot, indices: Slot, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Run:
    if g.dtype not in SUMS or not g.dtype.is_floating_point:
        return None
    kind = SUMS[g.dtype]
    counter = _counter(indices) if scale_grad_by_freq else None
    zero = (0,) * indices.ndim

    def build(out: Spec) -> Any:
        steps = [(*zero, out.strides[1]), (*indices.strides, 0), g.strides]
        p = IndexSpace(g.shape, steps, reach=reach(out), order=2)
        types = {"o": pointer(kind), "g": pointer(g.dtype), "index": pointer(indices.dtype)}
        body = [f"i = {p.load('index', 1)}.to(tl.int64)", f"keep = inside & (i != {p.arg('padding', padding_idx)})"]
        value = f"{p.load('g', 2)}.to(o.dtype.element_ty)"
        if scale_grad_by_freq:
            types["counts"] = "*i32"
            body.append("many = tl.load(counts + i + r * 0, mask=(i + r * 0) >= 0, other=1)")
            value += " / many.to(o.dtype.element_ty)"
        body += added(spot(p, 0, f"i * {p.arg('os', out.strides[0])}"), value, "keep")
        return p.kernel("embedding_backward", types, body)

    find = cached_by_spec(build)
    in_order = _in_order(g, indices, padding_idx, scale_grad_by_freq)

    def run(outs: list[View], g: View, indices: View) -> None:
        if determinism.are_deterministic_algorithms_enabled():
            in_order(outs[0], contiguous(g), contiguous(indices))
            return
        with summed(outs[0], None) as to:
            extra = []
            if counter is not None:
                counts = empty(Spec(Layout((max(rows, 1),)), dt.int32, to.spec.device))
                fill_view(counts, 0)
                counter(counts.ptr, indices.ptr)
                extra = [counts.ptr]
            find(to.spec)(to.ptr, g.ptr, indices.ptr, *extra)

    return run
