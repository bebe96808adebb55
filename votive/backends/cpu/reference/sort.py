"""Order on NumPy, which puts NaN last as torch does. Knows arrays, no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .index import is_half, lined


def ordered(x: Array, axis: int, descending: bool) -> Any:
    """Indices that sort along `axis`; equal values keep their order in both directions."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    # Backwards over the mirrored array: ties, met last to first, come out first to last.
    order = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(order, axis)


def _picked(x: Array, order: Array, dim: int, shape: Ints) -> tuple[Any, Any]:
    values = np.take_along_axis(x, order, dim)
    return values.reshape(shape), order.reshape(shape)


@kernel("_sort")
def sort(x: Array, dim: int, descending: bool) -> tuple[Any, Any]:
    rows = lined(x)
    return _picked(rows, ordered(rows, dim, descending), dim, x.shape)


@kernel("_topk")
def topk(x: Array, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    n = x.shape[dim]
    if 0 < k < n:
        part = np.argpartition(x, n - k if largest else k - 1, axis=dim)
        box = [slice(None)] * x.ndim
        box[dim] = slice(n - k, n) if largest else slice(k)
        # Ascending indices first, so that equal values come in the order they stand.
        chosen = np.sort(part[tuple(box)], axis=dim)
    else:
        chosen = ordered(x, dim, largest)
        chosen = chosen[(slice(None),) * dim + (slice(k),)]
    if in_order:
        order = ordered(np.take_along_axis(x, chosen, dim), dim, largest)
        chosen = np.take_along_axis(chosen, order, dim)
    return np.take_along_axis(x, chosen, dim), chosen


@kernel("_kthvalue")
def kthvalue(x: Array, k: int, dim: int, keepdim: bool) -> tuple[Any, Any]:
    rows = lined(x)
    at = np.take(np.argpartition(rows, k - 1, axis=dim), [k - 1], axis=dim)
    if x.ndim == 0:
        return x, at.reshape(())
    values = np.take_along_axis(rows, at, dim)
    return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))


@kernel("_unique", widen=False)
def unique(x: Array, dim: int | None, consecutive: bool, *wanted: bool) -> tuple[Any, Any, Any]:
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(lined(x), dim, 0)
    n = rows.shape[0]
    keys = rows.reshape(n, -1) if rows.size else np.zeros((n, 1))
    if is_half(x.dtype):
        keys = keys.astype(np.float32)
    order = np.arange(n) if consecutive else np.lexsort(keys.T[::-1])
    keys = keys[order]
    first = np.ones(n, bool)
    first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=n)
    inverse = np.empty(n, np.int64)
    inverse[order] = np.cumsum(first) - 1
    found = rows[order[starts]]
    if dim is None:
        return found.reshape(-1), inverse.reshape(x.shape), counts.astype(np.int64)
    return np.moveaxis(found, 0, dim), inverse, counts.astype(np.int64)
