"""Reading and writing by index tensors on NumPy. Knows arrays, no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .index import bounded, start, write


def _checked(op: str, indices: list[Array], dims: Ints, shape: Ints) -> list[Array]:
    for i, d in zip(indices, dims, strict=True):
        bounded(op, i, shape[d], d, IndexError, -shape[d])
    return list(indices)


def _selection(indices: list[Array], dims: Ints, ndim: int) -> tuple[Any, ...]:
    out: list[Any] = [slice(None)] * ndim
    for i, d in zip(indices, dims, strict=True):
        out[d] = i
    return tuple(out)


def _flat(indices: list[Array], dims: Ints, shape: Ints) -> Any:
    """The flat position of every element that is read, in the order in which reading gives them."""
    common = np.broadcast_shapes(*(i.shape for i in indices))
    kept = [d for d in range(len(shape)) if d not in dims]
    side_by_side = list(dims) == list(range(dims[0], dims[0] + len(dims)))
    lead = dims[0] if side_by_side else 0
    steps = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    at = np.zeros(common, np.int64)
    for i, d in zip(indices, dims, strict=True):
        at = at + np.where(i < 0, i + shape[d], i) * steps[d]
    at = at.reshape((1,) * lead + common + (1,) * (len(kept) - lead))
    for k, d in enumerate(kept):
        along = [1] * at.ndim
        along[k if k < lead else k + len(common)] = shape[d]
        at = at + (np.arange(shape[d]) * steps[d]).reshape(along)
    return at


@kernel("_index", widen=False)
def index(x: Array, indices: list[Array], dims: Ints) -> Array:
    found = _checked("indexing", indices, dims, x.shape)
    if len(found) == 1:
        return np.take(x, found[0], axis=dims[0])
    return x[_selection(found, dims, x.ndim)]


@kernel("_index_put", into=True, widen=False)
def index_put(x: Array, indices: list[Array], dims: Ints, values: Array, accumulate: bool, out: Array) -> None:
    found = _checked("index_put", indices, dims, x.shape)
    start(x, out)
    if accumulate:
        at = _flat(found, dims, x.shape)
        write(out, at.reshape(-1), np.broadcast_to(values, at.shape).reshape(-1), np.add)
        return
    if np.may_share_memory(values, out):
        values = values.copy()
    out[_selection(found, dims, out.ndim)] = values
