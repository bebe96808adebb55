"""Padding by tables of source positions, one per dimension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints


def _source(size: int, before: int, after: int, mode: str) -> Any:
    """For each padded position, where its value comes from."""
    at = np.arange(-before, size + after)
    if mode == "replicate":
        return at.clip(0, size - 1)
    if mode == "reflect":
        return size - 1 - np.abs(size - 1 - np.abs(at))
    # What negative amounts cut off does not come back on the other side.
    first, last = max(-before, 0), size - max(-after, 0)
    return (at - first) % max(last - first, 1) + first


def _tables(shape: Ints, pad: Ints, mode: str) -> Iterator[tuple[int, Any]]:
    """(dimension, table) for the padded ones, counted from the last."""
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if before or after:
            yield -1 - i, _source(shape[-1 - i], before, after, mode)


def collect(x: Array, index: Array, size: int, axis: int) -> Any:
    """`out[..., index[j], ...] += x[..., j, ...]`: the transpose of `take(index)` from `size`."""
    shape = list(x.shape)
    shape[axis] = size
    out = np.zeros(shape, x.dtype)
    if x.size:
        order = np.argsort(index, kind="stable")
        hit, starts = np.unique(index[order], return_index=True)
        np.moveaxis(out, axis, -1)[..., hit] = np.moveaxis(np.add.reduceat(x.take(order, axis), starts, axis), axis, -1)
    return out


@kernel("_pad", widen=False)
def pad(x: Array, pad: Ints, mode: str) -> Array:
    for axis, table in _tables(x.shape, pad, mode):
        x = x.take(table, axis)
    return x


@kernel("_pad_transpose")
def pad_transpose(x: Array, size: Ints, pad: Ints, mode: str) -> Array:
    for axis, table in _tables(size, pad, mode):
        x = collect(x, table, size[axis], axis)
    return x
