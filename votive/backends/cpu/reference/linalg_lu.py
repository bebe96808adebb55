"""LU factors with partial pivoting, whole batches at a time: NumPy has none. Knows arrays only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array
from .linalg_triangular import substitute

# Columns eliminated one by one; wider panels are split in two, so that matmul does most work.
PANEL = 16


def _swap(a: Array, swaps: Array, lo: int, hi: int, columns: slice) -> None:
    """Exchange row k with row swaps[:, k] inside some columns, for k from lo to hi."""
    each = np.arange(a.shape[0])
    for k in range(lo, hi):
        row = a[each, swaps[:, k], columns]
        a[each, swaps[:, k], columns] = a[:, k, columns]
        a[:, k, columns] = row


def _eliminate(a: Array, swaps: Array, lo: int, hi: int) -> None:
    """Factor columns lo to hi in place; rows above `lo` are done, other columns are left alone."""
    if hi - lo > PANEL:
        mid = (lo + hi) // 2
        left, right = slice(lo, mid), slice(mid, hi)
        _eliminate(a, swaps, lo, mid)
        _swap(a, swaps, lo, mid, right)
        a[:, left, right] = substitute(a[:, left, left], a[:, left, right], False, True)
        a[:, mid:, right] -= a[:, mid:, left] @ a[:, left, right]
        _eliminate(a, swaps, mid, hi)
        _swap(a, swaps, mid, hi, left)
        return
    for k in range(lo, hi):
        column = a[:, k:, k]
        # LAPACK ranks complex pivots by |re| + |im|; so do we, to choose the same rows.
        size = np.abs(column.real) + np.abs(column.imag) if a.dtype.kind == "c" else np.abs(column)
        swaps[:, k] = k + size.argmax(axis=1)
        _swap(a, swaps, k, k + 1, slice(lo, hi))
        pivot = a[:, k, k, None]
        a[:, k + 1 :, k] /= np.where(pivot == 0, 1, pivot)
        a[:, k + 1 :, k + 1 : hi] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 : hi]


def factor(a: Array) -> tuple[Any, Any, Any]:
    """L below the diagonal and U on and above it, row swaps counted from 0, first zero pivot."""
    *batch, m, n = a.shape
    lu = np.array(a).reshape(math.prod(batch), m, n)
    k = min(m, n)
    swaps = np.zeros((len(lu), k), np.int64)
    _eliminate(lu, swaps, 0, k)
    if n > k:
        _swap(lu, swaps, 0, k, slice(k, n))
        lu[:, :, k:] = substitute(lu[:, :, :k], lu[:, :, k:], False, True)
    zero = np.diagonal(lu, axis1=1, axis2=2) == 0
    info = np.where(zero.any(axis=1), zero.argmax(axis=1) + 1, 0) if k else np.zeros(len(lu))
    return lu.reshape(a.shape), swaps.reshape(*batch, k), info.reshape(batch)


def determinant(a: Array) -> Any:
    """The product of the pivots, with the sign of the row swaps."""
    if a.shape[-1] > PANEL:
        return np.linalg.det(a)
    # NumPy goes through logarithms, which rounds small integers off.
    lu, swaps, _ = factor(a)
    count = (swaps != np.arange(swaps.shape[-1])).sum(axis=-1)
    diagonal = np.diagonal(lu, axis1=-2, axis2=-1)
    return np.where(count % 2, -1, 1).astype(a.dtype) * diagonal.prod(axis=-1)


def row_order(swaps: Array, rows: int) -> Any:
    """Where each row of `P^T A` comes from, given the swaps counted from 0."""
    *batch, k = swaps.shape
    swaps = swaps.reshape(math.prod(batch), k)
    order = np.broadcast_to(np.arange(rows)[:, None], (len(swaps), rows, 1)).copy()
    _swap(order, swaps, 0, k, slice(0, 1))
    return order.reshape(*batch, rows)


@kernel("_lu_factor")
def lu_factor(a: Array) -> tuple[Any, Any, Any]:
    lu, swaps, info = factor(a)
    return lu, swaps + 1, info


@kernel("_row_order")
def row_order_of_pivots(pivots: Array, rows: int) -> Array:
    swaps = pivots.astype(np.int64) - 1
    if swaps.size and (swaps.min() < 0 or swaps.max() >= rows):
        fail(RuntimeError, "lu_unpack", f"pivots must lie in 1..{rows}, as lu_factor gives them.")
    return row_order(swaps, rows)
