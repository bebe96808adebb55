"""Cholesky factors by LAPACK through NumPy. Knows arrays only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .linalg_triangular import substitute


def _adjoint(x: Array) -> Any:
    return np.swapaxes(x, -2, -1).conj()


def _column_by_column(a: Array) -> tuple[Any, Any]:
    """The factor as far as it goes, and the order of the minor where it stopped."""
    *batch, n, _ = a.shape
    low = np.tril(a).reshape(math.prod(batch), n, n)
    info = np.zeros(len(low), np.int64)
    for k in range(n):
        going = info == 0
        row = low[going, k, :k]
        pivot = low[going, k, k].real - (np.abs(row) ** 2).sum(axis=-1)
        low[going, k, k] = pivot
        info[np.flatnonzero(going)[~(pivot > 0)]] = k + 1
        going = info == 0
        low[going, k, k] = np.sqrt(low[going, k, k])
        inner = (low[going, k + 1 :, :k] @ low[going, k, :k, None].conj())[..., 0]
        low[going, k + 1 :, k] = (low[going, k + 1 :, k] - inner) / low[going, k, k, None]
    return low.reshape(a.shape), info.reshape(batch)


@kernel("_cholesky")
def cholesky(a: Array, upper: bool) -> tuple[Any, Any]:
    if upper:
        a = _adjoint(a)
    if np.isfinite(a).all():
        try:
            low, info = np.linalg.cholesky(a), np.zeros(a.shape[:-2])
        except np.linalg.LinAlgError:
            low, info = _column_by_column(a)
    else:  # LAPACK lets NaN through, which is no positive pivot
        low, info = _column_by_column(a)
    return (_adjoint(low) if upper else low), info


@kernel("_cholesky_solve")
def cholesky_solve(b: Array, factor: Array, upper: bool) -> Array:
    low = _adjoint(factor) if upper else factor
    return substitute(_adjoint(low), substitute(low, b, False, False), True, False)


@kernel("_cholesky_inverse")
def cholesky_inverse(factor: Array, upper: bool) -> Array:
    low = _adjoint(factor) if upper else factor
    inverse = substitute(low, np.eye(low.shape[-1], dtype=low.dtype), False, False)
    return _adjoint(inverse) @ inverse
