"""Tensors as rows: what kernels that go along one dimension need of a layout. Knows strides, and
how to bring a tensor into rows when it does not lie so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from ....core.layout import Layout, Spec
from ..runtime.views import View, empty
from .copy import copy_view


def row_stride(spec: Spec, dims: int = 1) -> int | None:
    """The distance between rows of the last `dims` dimensions, when all lie alike and dense."""
    expected = 1
    for d in range(spec.ndim - 1, spec.ndim - 1 - dims, -1):
        if spec.shape[d] != 1 and spec.strides[d] != expected:
            return None
        expected *= spec.shape[d]
    distance = None
    for d in range(spec.ndim - 1 - dims, -1, -1):
        if spec.shape[d] == 1:
            continue
        if distance is None:
            distance, reach = spec.strides[d], spec.strides[d] * spec.shape[d]
        elif spec.strides[d] != reach:
            return None
        else:
            reach *= spec.shape[d]
    return expected if distance is None else distance


def sizes(spec: Spec, dims: int = 1) -> tuple[int, int]:
    """(how many rows, how long)."""
    cut = spec.ndim - dims
    return math.prod(spec.shape[:cut]), math.prod(spec.shape[cut:])


def contiguous(v: View) -> View:
    """The same values in row-major order."""
    if v.spec.contiguous:
        return v
    made = empty(v.spec.like(v.spec.shape))
    copy_view(made, v)
    return made


def expanded(v: View, shape: tuple[int, ...]) -> View:
    """The same values, broadcast to a shape, in row-major order."""
    if v.spec.contiguous and v.spec.shape == shape:
        return v
    made = empty(v.spec.like(shape))
    copy_view(made, v)
    return made


@contextmanager
def contiguous_output(v: View) -> Iterator[View]:
    """Row-major memory to write into, whose values end up in `v`."""
    if v.spec.contiguous:
        yield v
        return
    made = empty(v.spec.like(v.spec.shape))
    yield made
    copy_view(v, made)


def last(spec: Spec, dim: int) -> Spec:
    """The spec with `dim` moved to the end: the same memory."""
    order = [d for d in range(spec.ndim) if d != dim] + [dim]
    shape = tuple(spec.shape[d] for d in order)
    return Spec(Layout(shape, tuple(spec.strides[d] for d in order)), spec.dtype, spec.device)


def view_with_dim_last(v: View, dim: int) -> View:
    """The view with `dim` last."""
    return View(v.ptr, last(v.spec, dim), v.storage)


def next_power_of_two(n: int) -> int:
    """The next power of two."""
    return 1 << max(n - 1, 0).bit_length()


def row_block(n: int, most: int = 16384) -> tuple[int, int]:
    """(block size, warps) for rows of n elements held in registers as a whole."""
    size = min(next_power_of_two(max(n, 16)), most)
    return (size, 1 if size <= 256 else 2 if size <= 1024 else 4 if size <= 2048 else 8 if size <= 8192 else 16)


def rows_block(rows: int, n: int, most: int, elements: int = 1024) -> tuple[int, int, int]:
    """(rows, block size, warps) of programs that hold several short rows as a whole."""
    bn, warps = row_block(n, most)
    bm = max(1, min(elements // bn, next_power_of_two(rows)))
    # Many short rows: a warp alone would hold more addresses than it has registers.
    return bm, bn, max(warps, bm * bn // 256) if bn <= 64 else warps
