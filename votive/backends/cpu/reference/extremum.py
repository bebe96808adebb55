"""Smallest and largest values and their places. NaN wins over every number. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints


@kernel("amax")
def amax(x: Array, dim: Ints, keepdim: bool) -> Array:
    return np.max(x, axis=dim, keepdims=keepdim)


@kernel("amin")
def amin(x: Array, dim: Ints, keepdim: bool) -> Array:
    return np.min(x, axis=dim, keepdims=keepdim)


def pick(x: Array, index: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The values at an index along `dim` (which has size 1 there), and the index."""
    values = np.take_along_axis(x, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


@kernel("_max_dim")
def max_dim(x: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    return pick(x, np.argmax(x, axis=dim, keepdims=True), dim, keepdim)


@kernel("_min_dim")
def min_dim(x: Array, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    return pick(x, np.argmin(x, axis=dim, keepdims=True), dim, keepdim)


@kernel("argmax")
def argmax(x: Array, dim: int | None, keepdim: bool) -> Array:
    return np.argmax(x, axis=dim if x.ndim else None, keepdims=keepdim)


@kernel("argmin")
def argmin(x: Array, dim: int | None, keepdim: bool) -> Array:
    return np.argmin(x, axis=dim if x.ndim else None, keepdims=keepdim)
