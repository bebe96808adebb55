"""Writing at positions along one dimension on NumPy. Knows arrays, no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .index import bounded, lined, number, positions, start, write


def _scatter(
    op: str,
    x: Array,
    dim: int,
    index: Array,
    src: Array | complex,
    out: Array,
    how: np.ufunc | None = None,
    clear: float | None = None,
) -> None:
    """Write `src` where `index` says; `clear` first replaces what is there."""
    if index.size == 0:
        return start(x, out)
    at = lined(index)
    bounded(op, at, lined(out).shape[dim], dim)
    if isinstance(src, np.ndarray):
        part = lined(src)[tuple(slice(n) for n in at.shape)].reshape(-1)
    else:
        part = np.asarray(number(op, src, out.dtype))
    if np.may_share_memory(part, out):
        part = part.copy()
    start(x, out)
    out = lined(out)
    at = positions(at, dim, out.shape)
    if clear is not None:
        write(out, at, np.asarray(clear, out.dtype))
    write(out, at, part, how)
    return None


@kernel("_scatter", into=True, widen=False)
def scatter(x: Array, dim: int, index: Array, src: Array | complex, out: Array) -> None:
    _scatter("scatter", x, dim, index, src, out)


@kernel("scatter_add", into=True, widen=False)
def scatter_add(x: Array, dim: int, index: Array, src: Array, out: Array) -> None:
    _scatter("scatter_add", x, dim, index, src, out, np.add)


@kernel("_first_order", into=True, widen=False)
def first_order(x: Array, out: Array) -> None:
    np.copyto(out, x)


@kernel("_scatter_prod", into=True, widen=False)
def scatter_prod(x: Array, dim: int, index: Array, src: Array, own: bool, out: Array) -> None:
    _scatter("scatter_reduce", x, dim, index, src, out, np.multiply, None if own else 1)


def _least(dtype: np.dtype[Any], sign: int) -> float:
    """What loses against every other value: the neutral element of max (sign 1) or min (-1)."""
    if dtype.kind == "b":
        return sign < 0
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if sign > 0 else np.iinfo(dtype).max
    return -np.inf if sign > 0 else np.inf


@kernel("_scatter_extremum", into=True, widen=False)
def scatter_extremum(x: Array, dim: int, index: Array, src: Array, reduce: str, own: bool, out: Array) -> None:
    sign = 1 if reduce == "amax" else -1
    how = np.maximum if sign > 0 else np.minimum
    clear = None if own else _least(out.dtype, sign)
    _scatter("scatter_reduce", x, dim, index, src, out, how, clear)
