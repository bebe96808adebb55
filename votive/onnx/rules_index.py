"""How gathers, scatters and indexing by tensors are written as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.graph import Value
from ..core import dtype as dt
from .rules_shapes import INT64_MAX, sliced
from .sizes import Int, Sym
from .translate import Call, translates


def _long(c: Call, index: Value) -> str:
    return c.name(index) if c.dtype(index) is dt.int64 else c.b.cast(c.name(index), dt.int64)


@translates("_embedding")
def embedding(c: Call, weight: Value, indices: Value, *options: Any) -> str:
    return c.op("Gather", c.name(weight), _long(c, indices), axis=0)


@translates("gather")
def gather(c: Call, x: Value, dim: int, index: Value, sparse_grad: bool) -> str:
    if not c.shape(x):
        return c.op("Identity", c.name(x))
    return c.op("GatherElements", _cut(c, c.name(x), c.shape(x), c.shape(index), dim), _long(c, index), axis=dim)


def _cut(c: Call, x: str, have: Sequence[Int], index: Sequence[Int], dim: int) -> str:
    """ONNX wants equal sizes beside the gathered dimension; torch takes the first ones."""
    n = len(have)
    parts = [(d, 0, index[d], 1) for d in range(n) if d != dim % n and index[d] != have[d]]
    return sliced(c, x, parts) if parts else x


@translates("index_select")
def index_select(c: Call, x: Value, dim: int, index: Value) -> str:
    if not c.shape(x):
        return c.op("Identity", c.name(x))
    where = _long(c, index)
    return c.op("Gather", c.name(x), where if c.shape(index) else c.b.reshape(where, [1]), axis=dim % len(c.shape(x)))


@translates("take")
def take(c: Call, x: Value, index: Value) -> str:
    return c.op("Gather", c.b.reshape(c.name(x), [-1]), _long(c, index), axis=0)


def _joined(c: Call, indices: Sequence[Value]) -> str:
    """Indices broadcast together, side by side in a last dimension."""
    names = [_long(c, i) for i in indices]
    if len({c.shape(i) for i in indices}) > 1:
        common = c.op("Add", names[0], names[1])
        for name in names[2:]:
            common = c.op("Add", common, name)
        shape = c.op("Shape", common)
        names = [c.op("Expand", n, shape) for n in names]
    return c.op("Concat", *[c.op("Unsqueeze", n, c.b.constant([-1])) for n in names], axis=-1)


def _front(c: Call, x: Value, dims: Sequence[int]) -> tuple[str, list[int]]:
    order = [*dims, *(d for d in range(len(c.shape(x))) if d not in dims)]
    plain = order == list(range(len(order)))
    return (c.name(x) if plain else c.op("Transpose", c.name(x), perm=order)), order


def _place(dims: Sequence[int]) -> int:
    """Where the dimensions of the indices stand in the result: at those that they take the place of, if adjacent."""
    return dims[0] if list(dims) == list(range(dims[0], dims[0] + len(dims))) else 0


@translates("_index")
def index(c: Call, x: Value, indices: Sequence[Value], dims: Sequence[int]) -> str:
    if len(indices) == 1:
        return c.op("Gather", c.name(x), _long(c, indices[0]), axis=dims[0])
    source, _ = _front(c, x, dims)
    found = c.op("GatherND", source, _joined(c, indices))
    width = max(len(c.shape(i)) for i in indices)
    place = _place(dims)
    if place == 0:
        return found
    order = [*range(width, width + place), *range(width), *range(width + place, len(c.out_shape))]
    return c.op("Transpose", found, perm=order)


@translates("_index_put")
def index_put(c: Call, x: Value, indices: Sequence[Value], dims: Sequence[int], values: Value, accumulate: bool) -> str:
    source, order = _front(c, x, dims)
    width, place = max(len(c.shape(i)) for i in indices), _place(dims)
    where = _joined(c, indices)
    rest = [d for d in range(len(order)) if d not in dims]
    lead = c.op("Shape", where, end=-1)
    if place:
        # Values come in the order of the result of indexing: the dimensions before the indices first.
        n = place + width + len(rest) - place
        have = len(c.shape(values))
        values_name = c.name(values)
        if have < n:
            values_name = c.b.reshape(values_name, [*[1] * (n - have), *c.shape(values)])
        turned = [*range(place, place + width), *range(place), *range(place + width, n)]
        values_name = c.op("Transpose", values_name, perm=turned)
    else:
        values_name = c.name(values)
    tail = c.b.sizes([c.shape(x)[d] for d in rest]) if rest else None
    full = c.op("Concat", lead, tail, axis=0) if tail else lead
    if c.dtype(values) is not c.dtype(x):
        values_name = c.b.cast(values_name, c.dtype(x))
    updates = c.op("Expand", values_name, full)
    made = c.op("ScatterND", source, where, updates, reduction="add" if accumulate else None)
    back = [order.index(d) for d in range(len(order))]
    return made if back == list(range(len(back))) else c.op("Transpose", made, perm=back)


@translates("_scatter", "scatter_add")
def scatter(c: Call, x: Value, dim: int, index: Value, src: Any) -> str:
    where = _long(c, index)
    if isinstance(src, Value) and c.shape(src):
        values = c.name(src)
        parts = [(d, 0, n, 1) for d, (n, m) in enumerate(zip(c.shape(index), c.shape(src), strict=True)) if n != m]
        values = sliced(c, values, parts) if parts else values
    else:
        number = c.name(src) if isinstance(src, Value) else c.b.number(src, c.dtype(x))
        values = c.op("Expand", number, c.b.sizes(c.shape(index)))
    if isinstance(src, Value) and c.dtype(src) is not c.dtype(x):
        values = c.b.cast(values, c.dtype(x))
    how = "add" if c.node.op.name == "scatter_add" else None
    return c.op("ScatterElements", c.name(x), where, values, axis=dim, reduction=how)


def _along(c: Call, x: Value, dim: int, index: Value, values: str, how: str | None) -> str:
    """Whole slices at places along one dimension."""
    shape = c.shape(x)
    n = len(shape)
    place = c.b.reshape(_long(c, index), [-1 if d == dim % n else 1 for d in range(n)])
    sizes = c.b.sizes([c.shape(index)[0] if d == dim % n else shape[d] for d in range(n)])
    return c.op("ScatterElements", c.name(x), c.op("Expand", place, sizes), values, axis=dim, reduction=how)


@translates("index_copy")
def index_copy(c: Call, x: Value, dim: int, index: Value, source: Value) -> str:
    return _along(c, x, dim, index, c.name(source), None)


@translates("index_add")
def index_add(c: Call, x: Value, dim: int, index: Value, source: Value, alpha: Any) -> str:
    values = c.name(source) if alpha == 1 else c.op("Mul", c.name(source), c.b.number(alpha, c.dtype(x)))
    return _along(c, x, dim, index, values, "add")


@translates("index_fill")
def index_fill(c: Call, x: Value, dim: int, index: Value, value: Any) -> str:
    shape = c.shape(x)
    number = c.name(value) if isinstance(value, Value) else c.b.number(value, c.dtype(x))
    sizes = [c.shape(index)[0] if d == dim % len(shape) else shape[d] for d in range(len(shape))]
    return _along(c, x, dim, index, c.op("Expand", number, c.b.sizes(sizes)), None)


@translates("select_scatter")
def select_scatter(c: Call, x: Value, src: Value, dim: int, index: Int) -> str:
    axis = c.b.constant([dim % len(c.shape(x))])
    return _window_put(c, x, c.op("Unsqueeze", c.name(src), axis), dim, index, index + 1, 1)


@translates("slice_scatter")
def slice_scatter(c: Call, x: Value, src: Value, dim: int, start: Any, end: Any, step: int) -> str:
    size = c.shape(x)[dim]
    return _window_put(c, x, c.name(src), dim, 0 if start is None else start, size if end is None else end, step)


def _window_put(c: Call, x: Value, values: str, dim: int, start: Int, end: Int, step: int) -> str:
    shape = c.shape(x)
    size = shape[dim]
    if isinstance(size, Sym):
        numbers = c.op("Range", c.b.constant(0), c.op("Squeeze", c.b.size(size)), c.b.constant(1))
        places = sliced(c, numbers, [(0, start, INT64_MAX if end == size else end, step)])
    else:
        first, last = c.fixed([start, end], "places")
        places = c.b.constant(np.arange(size)[first:last:step])
    n = len(shape)
    lined = c.b.op("Reshape", places, c.b.constant([-1 if d == dim % n else 1 for d in range(n)]))
    return c.op("ScatterElements", c.name(x), c.op("Expand", lined, c.op("Shape", values)), values, axis=dim)
