"""Gradients of windows on memory, and writing through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....core.dtype import dtype
from ....core.layout import extent, has_overlap
from ...base import kernel
from ..arrays import Array, Ints


def window(block: Array, shape: Ints, strides: Ints, offset: int) -> Any:
    """A writable window on a row-major array, geometry counted in elements."""
    n = extent(shape, strides)
    flat = block.reshape(-1)[offset : offset + n]
    return as_strided(flat, shape, [s * block.itemsize for s in strides])


def places(shape: Ints, strides: Ints, offset: int) -> Any:
    """The flat index of each element of a window."""
    axes = np.ogrid[tuple(slice(n) for n in shape)]
    return offset + sum((a * s for a, s in zip(axes, strides, strict=True)), np.zeros(shape, int))


@kernel("_into_window")
def into_window(x: Array, size: Ints, stride: Ints, offset: int) -> Array:
    out = np.zeros(size, x.dtype)
    if has_overlap(x.shape, stride):
        np.add.at(out.reshape(-1), places(x.shape, stride, offset).ravel(), x.ravel())
    elif x.size:
        window(out, x.shape, stride, offset)[...] = x
    return out


@kernel("_visits")
def visits(length: int, size: Ints, stride: Ints, offset: int, dtype: dtype, device: object) -> Array:
    counts = np.bincount(places(size, stride, offset).ravel(), minlength=length)
    return np.maximum(counts, 1).astype(dtype.np)
