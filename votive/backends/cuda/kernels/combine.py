"""Joining tensors. A few are arguments of one launch, and so are many dense ones by a table of their addresses;
else each is copied to its window.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import accumulate
from operator import or_
from typing import Any

import triton
import triton.language as tl

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import IndexSpace, cached_by_spec, pieces, word
from ..programs.join import Join, Piece, fits
from ..programs.layouts import row_stride
from ..programs.multi_tensor import Table, addresses, place
from ..programs.program import Program
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View

MOST = 1 << 25  # elements: beyond, the table is long and launches are few by comparison
BLOCK = 1024
MOST_ALIKE, SMALL = 16, 1 << 18  # tensors of one launch, and elements below which launches take the longest


@triton.jit
def _concatenate(o, table, count, chunks, row, ROWS: tl.constexpr, WORD: tl.constexpr, BLOCK: tl.constexpr):
    """A chunk of one tensor: its rows lie side by side with those of the others. Columns of the
    table: addresses, lengths of rows, where they begin in a row of the result.
    """
    which, first, n = place(table, count, chunks, 3)
    p = tl.load(table + which).to(tl.pointer_type(WORD))
    length = tl.load(table + count + which)
    begin = tl.load(table + 2 * count + which)
    for k in tl.static_range(8192 // BLOCK):
        i = first + k * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(p + i, mask=i < n)
        to = begin + i
        if ROWS:
            to = i // length * row + begin + i % length
        tl.store(o + to, v, mask=i < n)


_WORDS = {8: (tl.int64, "*i64"), 4: (tl.int32, "*i32"), 2: (tl.int16, "*i16"), 1: (tl.int8, "*i8")}


def _few(tensors: Any, dims: int, outer: int, lengths: list[int], size: int) -> Any:
    """join(out, tensors) of a few tensors whose rows, over their last `dims` dimensions, lie dense; or None."""
    strides = [row_stride(t.spec, dims) for t in tensors]
    row = sum(lengths)
    begins = accumulate(lengths[:-1], initial=0)
    rows = [
        Piece(n * size, s * size, b * size)
        for n, s, b in zip(lengths, strides, begins, strict=True)
        if s is not None and s >= 0
    ]
    if len(rows) < len(lengths) or not fits(rows):
        return None
    join = Join(rows, outer, row * size)
    return lambda out, views: join(out.ptr, addresses(views))


def _at_once(tensors: Any, dims: int, outer: int, lengths: list[int]) -> Any:
    """join(out, tensors) in one launch, or None: tensors are not dense, or of several types.

    Each is `outer` rows of its length, over its last `dims` dimensions.
    """
    kinds = {t.dtype for t in tensors}
    if len(kinds) != 1:
        return None
    size = kinds.pop().itemsize
    if size not in _WORDS:
        return None
    few = _few(tensors, dims, outer, lengths, size)
    if few is not None:
        return few
    if not all(t.contiguous for t in tensors):
        return None
    row = sum(lengths)
    if outer * row > MOST:
        return None
    fixed_bits = reduce(or_, lengths, row) * size
    ways: dict[int, tuple[Any, ...]] = {}

    def way(word: int) -> tuple[Any, ...]:
        kind, pointer = _WORDS[word]
        types = [pointer, "*i64", "i32", "i32", "i64"]
        fixed = {"ROWS": outer > 1, "WORD": kind, "BLOCK": BLOCK}
        widths = [n * size // word for n in lengths]
        begins = [0, *accumulate(widths[:-1])]
        sizes = [outer * w for w in widths]
        return Table(), Program(_concatenate, types, fixed), widths, begins, sizes, row * size // word

    def run(out: View, views: list[View]) -> None:
        where = addresses(views)
        bits = reduce(or_, where, fixed_bits | out.ptr)
        # The widest words that all addresses and lengths are multiples of.
        word = min(bits & -bits, 8)
        found = ways.get(word)
        if found is None:
            found = ways[word] = way(word)
        table, program, widths, begins, sizes, wide = found
        at = table.write([where, widths, begins], sizes)
        program((table.chunks,), out.ptr, at, len(views), table.chunks, wide)

    return run


def _alike(tensors: Any, target: Spec, dim: int) -> Any:
    """join(out, tensors) in one launch of a few small tensors of one layout, whatever it is; or None. `target`: the
    part of the result that the first one fills, `dim`: the dimension along which the others follow, of the result.
    """
    first = tensors[0].spec
    kind = word(first.dtype)
    few = len(tensors) <= MOST_ALIKE and len(tensors) * first.numel <= SMALL
    if not few or kind is None or target.dtype is not first.dtype or any(t.spec is not first for t in tensors):
        return None
    p = IndexSpace(target.shape, [target.strides, first.strides])
    lines = ["which = tl.program_id(1)", "x = x0"]
    lines += [f"x = tl.where(which >= {k}, x{k}, x)" for k in range(1, len(tensors))]
    to = f"o + (which * {p.arg('STEP', dim)} + {p.offsets[0] or '0'} + r * 0 + n * 0)"
    lines.append(f"tl.store({to}, {p.load('x', 1)}, mask=inside)")
    types = {"o": kind, **{f"x{k}": kind for k in range(len(tensors))}}
    kernel = p.kernel(f"join_alike{len(tensors)}", types, lines)
    grid, program, numbers = (*kernel.grid, len(tensors)), kernel.program, kernel.values
    return lambda out, views: program(grid, out.ptr, *addresses(views), *numbers)


def _permuted(spec: Spec, order: list[int]) -> Spec:
    return spec.like(tuple(spec.shape[d] for d in order), strides=tuple(spec.strides[d] for d in order))


def _joining(tensors: Any, sizes: list[int], dim: int, gone: bool) -> Any:
    """`find(spec of the result)(out, tensors)`; `gone`: the dimension is a new one, of the result alone."""
    width = sum(sizes)

    def build(out: Spec) -> Any:
        # In the order of the result's memory: what is dense in that order is dense here.
        order = sorted(range(out.ndim), key=lambda d: -out.strides[d])
        at = order.index(dim)
        kept = [d for d in order if d != dim] if gone else order
        back = [d - (d > dim) for d in kept] if gone else order
        shape = tuple(out.shape[d] for d in order)
        dense = out.like(shape, strides=tuple(out.strides[d] for d in order)).contiguous
        moved = [Slot(t.index, _permuted(t.spec, back)) for t in tensors]
        inner, outer = math.prod(shape[at + 1 :]), math.prod(shape[:at])
        if dense and out.dtype is tensors[0].dtype:
            once = _at_once(moved, out.ndim - at - gone, outer, [n * inner for n in sizes])
            if once is not None:
                return once
        if len(set(sizes)) == 1 and width:
            part = pieces(View(0, out, None), [sizes[0]], dim, gone)[0].spec
            once = _alike(tensors, part, sizes[0] * out.strides[dim])
            if once is not None:
                return once

        def each(to: View, views: list[View]) -> None:
            for piece, source in zip(pieces(to, sizes, dim, gone), views, strict=True):
                copy_view(piece, source)

        return each

    return cached_by_spec(build)


@cuda("cat")
def cat(tensors: tuple[Slot, ...], dim: int) -> Run:
    # An empty vector joins anything.
    real = [t.numel > 0 for t in tensors]
    given = [t for t, r in zip(tensors, real, strict=True) if r]
    if not given:
        return lambda outs, tensors: None
    find = _joining(given, [t.shape[dim] for t in given], dim, False)
    if all(real):
        return lambda outs, tensors: find(outs[0].spec)(outs[0], tensors)

    def run(outs: list[View], tensors: list[View]) -> None:
        find(outs[0].spec)(outs[0], [t for t, r in zip(tensors, real, strict=True) if r])

    return run


@cuda("stack")
def stack(tensors: tuple[Slot, ...], dim: int) -> Run:
    if not tensors[0].numel:
        return lambda outs, tensors: None
    find = _joining(tensors, [1] * len(tensors), dim, True)
    return lambda outs, tensors: find(outs[0].spec)(outs[0], tensors)
