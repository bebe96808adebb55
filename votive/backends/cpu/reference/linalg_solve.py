"""Linear systems and inverses by LAPACK through NumPy. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .linalg_lu import factor, row_order
from .linalg_triangular import substitute


def _by_factors(a: Array, b: Array) -> tuple[Any, Any]:
    """The solution where some matrix is singular: its part is made of inf and NaN, as in LAPACK."""
    lu, swaps, info = factor(a)
    order = np.broadcast_to(row_order(swaps, a.shape[-1])[..., None], (*b.shape[:-1], 1))
    x = np.take_along_axis(b, order, axis=-2)
    return substitute(lu, substitute(lu, x, False, True), True, False), info


@kernel("_solve")
def solve(a: Array, b: Array) -> tuple[Any, Any]:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    try:
        return np.linalg.solve(a, b), np.zeros(a.shape[:-2])
    except np.linalg.LinAlgError:
        return _by_factors(a, b)


@kernel("_inv")
def inv(a: Array) -> tuple[Any, Any]:
    try:
        return np.linalg.inv(a), np.zeros(a.shape[:-2])
    except np.linalg.LinAlgError:
        return _by_factors(a, np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape))
