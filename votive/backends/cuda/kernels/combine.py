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

from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import pieces
from ..programs.join import Join, Piece, fits
from ..programs.layouts import row_stride
from ..programs.multi_tensor import Table, addresses, place
from ..programs.program import Program
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View

MOST = 1 << 25  # elements: beyond, the table is long and launches are few by comparison
BLOCK = 1024


@triton.jit
def _joined(o, table, count, chunks, row, ROWS: tl.constexpr, WORD: tl.constexpr, BLOCK: tl.constexpr):
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
        return Table(), Program(_joined, types, fixed), widths, begins, sizes, row * size // word

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


@cuda("cat")
def cat(tensors: tuple[Slot, ...], dim: int) -> Run:
    # An empty vector joins anything.
    real = [t.numel > 0 for t in tensors]
    given = [t for t, r in zip(tensors, real, strict=True) if r]
    sizes = [t.shape[dim] for t in given]
    inner = math.prod(given[0].shape[dim + 1 :]) if given else 1
    outer = math.prod(given[0].shape[:dim]) if given else 1
    at_once = _at_once(given, given[0].ndim - dim, outer, [n * inner for n in sizes]) if given else None
    kind = given[0].dtype if given else None
    all_real = all(real)

    def run(outs: list[View], tensors: list[View]) -> None:
        parts = tensors if all_real else [t for t, r in zip(tensors, real, strict=True) if r]
        if at_once and outs[0].spec.contiguous and outs[0].spec.dtype is kind:
            at_once(outs[0], parts)
            return
        for to, source in zip(pieces(outs[0], sizes, dim, False), parts, strict=True):
            copy_view(to, source)

    return run


@cuda("stack")
def stack(tensors: tuple[Slot, ...], dim: int) -> Run:
    inner, outer = math.prod(tensors[0].shape[dim:]), math.prod(tensors[0].shape[:dim])
    at_once = _at_once(tensors, tensors[0].ndim - dim, outer, [inner] * len(tensors)) if inner and outer else None
    kind = tensors[0].dtype

    def run(outs: list[View], tensors: list[View]) -> None:
        if at_once and outs[0].spec.contiguous and outs[0].spec.dtype is kind:
            at_once(outs[0], tensors)
            return
        for to, source in zip(pieces(outs[0], [1] * len(tensors), dim, True), tensors, strict=True):
            copy_view(to, source)

    return run
