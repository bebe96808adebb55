"""Sums, products and tests over dimensions. Knows arrays only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.dtype import compute_type, dtype
from ...base import kernel
from ..arrays import Array, Ints

WIDE = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def total(x: Array, dim: Ints, keepdim: bool = False) -> Any:
    """The sum over `dim`, accurate for any of them.

    NumPy adds pairwise along the innermost axis only. Elsewhere it adds one by one, and a long
    column of float32 would lose digits, so the others get an accumulator of twice the width.
    """
    innermost = x.flags.c_contiguous and dim == tuple(range(x.ndim - len(dim), x.ndim))
    return np.sum(x, axis=dim, keepdims=keepdim, dtype=None if innermost else WIDE.get(x.dtype))


def cast(x: Array, to: dtype) -> Any:
    """`x` in the type that arithmetic on `to` is carried out in."""
    if x.dtype.kind == "c" and not to.is_complex:
        x = x.real
    return x.astype(compute_type(to).np, copy=False)


def count(x: Array, dim: Ints) -> int:
    """How many elements go into one result."""
    return math.prod(x.shape[d] for d in dim)


@kernel("sum")
def sum(x: Array, dim: Ints, keepdim: bool, dtype: dtype) -> Array:
    if dtype.name == "bool":
        return np.any(x, axis=dim, keepdims=keepdim)
    return total(cast(x, dtype), dim, keepdim)


@kernel("nansum")
def nansum(x: Array, dim: Ints, keepdim: bool, dtype: dtype) -> Array:
    return sum(np.where(np.isnan(x), x.dtype.type(0), x), dim, keepdim, dtype)


@kernel("mean")
def mean(x: Array, dim: Ints, keepdim: bool, dtype: dtype) -> Array:
    return total(cast(x, dtype), dim, keepdim) / np.float64(count(x, dim))


@kernel("prod")
def prod(x: Array, dim: int | None, keepdim: bool, dtype: dtype) -> Array:
    axis = None if dim is None or x.ndim == 0 else dim
    if dtype.name == "bool":
        return np.all(x, axis=axis, keepdims=keepdim)
    x = cast(x, dtype)
    return np.prod(x, axis=axis, keepdims=keepdim, dtype=x.dtype)


@kernel("logsumexp")
def logsumexp(x: Array, dim: Ints, keepdim: bool) -> Array:
    if x.dtype.kind in "biu":
        x = x.astype(np.float64)
    # Shift by the largest first, so that no exponential overflows; an infinite one is no help.
    top = np.max(x.real, axis=dim, keepdims=True, initial=-np.inf)
    top = np.where(np.isinf(top), 0, top).astype(x.real.dtype)
    result = np.log(total(np.exp(x - top), dim, True)) + top
    return result if keepdim else result.squeeze(dim)


@kernel("all")
def all(x: Array, dim: Ints, keepdim: bool) -> Array:
    return np.all(x, axis=dim, keepdims=keepdim)


@kernel("any")
def any(x: Array, dim: Ints, keepdim: bool) -> Array:
    return np.any(x, axis=dim, keepdims=keepdim)


@kernel("count_nonzero")
def count_nonzero(x: Array, dim: Ints) -> Array:
    return np.asarray(np.sum(x != 0, axis=dim, dtype=np.int64))
