"""Reading and writing along one dimension on NumPy. Knows arrays, no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array, Ints


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether sums in this type are carried in float32 and rounded once."""
    return dtype == np.float16 or dtype.kind == "V"


def bounded(op: str, index: Array, size: int, dim: int, kind: type[Exception] = RuntimeError, below: int = 0) -> Any:
    """`index` after checking that it lies in `below..size-1`."""
    if index.size:
        low, high = index.min(), index.max()
        if low < below or high >= size:
            bad = low if low < below else high
            fail(kind, op, f"index {bad} is out of bounds for dimension {dim} with size {size}.")
    return index


def number(op: str, value: complex, dtype: np.dtype[Any]) -> Any:
    """A Python number as an element of `dtype`, if it fits."""
    if isinstance(value, complex):
        if dtype.kind == "c":
            return dtype.type(value)
        if value.imag:
            fail(RuntimeError, op, f"value {value} cannot be converted to {dtype}.")
        value = value.real
    if dtype.kind in "iu":
        value = int(value)
        info = np.iinfo(dtype)
        if not (info.min if info.min else -info.max) <= value <= info.max:
            fail(RuntimeError, op, f"value {value} does not fit into {dtype}.")
        return np.array(value).astype(dtype)[()]
    found = dtype.type(value)
    if np.isinf(found) and not np.isinf(value):
        fail(RuntimeError, op, f"value {value} does not fit into {dtype}.")
    return found


def lined(array: Array) -> Any:
    """A 0-d array as one of a single element, over the same memory."""
    return array.reshape(1) if array.ndim == 0 else array


def positions(index: Array, dim: int, shape: Ints) -> Any:
    """Flat positions in an array of `shape` that `index` along `dim` names, in row-major order."""
    out: Array = np.zeros((1,) * index.ndim, np.int64)
    step = 1
    for d in range(len(shape) - 1, -1, -1):
        along = [1] * index.ndim
        along[d] = index.shape[d]
        where = index if d == dim else np.arange(index.shape[d]).reshape(along)
        out = out + where * np.int64(step)
        step *= shape[d]
    return np.broadcast_to(out, index.shape).reshape(-1)


def write(out: Array, at: Array, values: Array, how: np.ufunc | None = None) -> None:
    """`out.flat[at] = values` in order, or combined with what is there by the ufunc `how`."""
    if np.may_share_memory(out, values):
        values = values.copy()
    wide = np.dtype(np.float32) if how is not None and is_half(out.dtype) else out.dtype
    flat = out.reshape(-1).astype(wide, copy=False)
    values = np.asarray(values).astype(wide, copy=False)
    if how is None:
        flat[at] = values
    else:
        # NumPy's indexed loops serve one-dimensional arrays: several times faster than rows.
        how.at(flat, at, values)
    if not np.may_share_memory(flat, out):
        np.copyto(out, flat.reshape(out.shape), casting="unsafe")


def start(x: Array, out: Array) -> None:
    """Begin with the input's values; in place they are there already."""
    if out is not x:
        np.copyto(out, x)


@kernel("gather", widen=False)
def gather(x: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    if index.size == 0:
        return np.empty(index.shape, x.dtype)
    x, i = lined(x), lined(index)
    bounded("gather", i, x.shape[dim], dim)
    box = tuple(slice(None) if d == dim else slice(n) for d, n in enumerate(i.shape))
    return np.take_along_axis(x[box], i, dim).reshape(index.shape)


@kernel("index_select", widen=False)
def index_select(x: Array, dim: int, index: Array) -> Array:
    at = bounded("index_select", lined(index), lined(x).shape[dim], dim, IndexError)
    return np.take(x, at, axis=dim) if x.ndim else x.copy()


def slices(index: Array, dim: int, shape: Ints) -> Any:
    """Flat positions of the slices along `dim` that a vector names."""
    sizes = [1] * len(shape)
    sizes[dim] = index.size
    whole = (*shape[:dim], index.size, *shape[dim + 1 :])
    return positions(np.broadcast_to(index.reshape(sizes), whole), dim, shape)


@kernel("index_add", into=True, widen=False)
def index_add(x: Array, dim: int, index: Array, source: Array, alpha: float, out: Array) -> None:
    at = bounded("index_add", lined(index), lined(out).shape[dim], dim)
    if is_half(source.dtype):
        source = source.astype(np.float32)
    if alpha != 1:
        source = source * np.array(alpha).astype(source.dtype)
    start(x, out)
    out = lined(out)
    write(out, slices(at, dim, out.shape), source.reshape(-1), np.add)


@kernel("index_copy", into=True, widen=False)
def index_copy(x: Array, dim: int, index: Array, source: Array, out: Array) -> None:
    at = bounded("index_copy", lined(index), lined(out).shape[dim], dim, IndexError)
    start(x, out)
    out = lined(out)
    write(out, slices(at, dim, out.shape), source.reshape(-1))


@kernel("index_fill", into=True, widen=False)
def index_fill(x: Array, dim: int, index: Array, value: Array | complex, out: Array) -> None:
    size = lined(out).shape[dim]
    at = bounded("index_fill", lined(index), size, dim, IndexError, -size)
    if isinstance(value, np.ndarray):
        fixed = value.astype(out.dtype)
    else:
        fixed = number("index_fill", value, out.dtype)
    start(x, out)
    lined(out)[(slice(None),) * dim + (at,)] = fixed


def _flat_places(op: str, index: Array, size: int) -> Any:
    """Positions in a flattened tensor; negative ones count from the end."""
    if index.size:
        low, high = index.min(), index.max()
        if low < -size or high >= size:
            bad = low if low < -size else high
            fail(IndexError, op, f"out of range: tried to access index {bad} on a tensor of {size} elements.")
    return np.where(index < 0, index + size, index)


@kernel("take", widen=False)
def take(x: Array, index: Array) -> Array:
    return np.take(x.reshape(-1), _flat_places("take", index, x.size)).reshape(index.shape)


@kernel("put", into=True, widen=False)
def put(x: Array, index: Array, source: Array, accumulate: bool, out: Array) -> None:
    at = _flat_places("put", index, x.size).reshape(-1)
    start(x, out)
    write(lined(out), at, source.reshape(-1), np.add if accumulate else None)
