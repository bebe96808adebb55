"""Substitution in batches of triangular systems: NumPy has none. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array

# Rows substituted one by one; larger systems are split in two, so that matmul does most work.
PANEL = 16


def substitute(a: Array, b: Array, upper: bool, unit: bool) -> Any:
    """X with `A X = B`, reading one triangle of A; `unit` takes its diagonal as 1."""
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*batch, n, b.shape[-1]), b.dtype)
    _fill(a, np.broadcast_to(b, x.shape), x, upper, unit)
    return x


def _fill(a: Array, b: Array, x: Array, upper: bool, unit: bool) -> None:
    n = a.shape[-1]
    if n > PANEL:
        mid = n // 2
        top, low = slice(0, mid), slice(mid, n)
        first, then = (low, top) if upper else (top, low)
        _fill(a[..., first, first], b[..., first, :], x[..., first, :], upper, unit)
        rest = b[..., then, :] - a[..., then, first] @ x[..., first, :]
        _fill(a[..., then, then], rest, x[..., then, :], upper, unit)
        return
    for i in reversed(range(n)) if upper else range(n):
        done = slice(i + 1, n) if upper else slice(0, i)
        row = b[..., i, :]
        if done.stop > done.start:
            row = row - (a[..., i, None, done] @ x[..., done, :])[..., 0, :]
        x[..., i, :] = row if unit else row / a[..., i, i, None]


@kernel("_solve_triangular")
def solve_triangular(a: Array, b: Array, upper: bool, unit: bool) -> Array:
    return substitute(a, b, upper, unit)
