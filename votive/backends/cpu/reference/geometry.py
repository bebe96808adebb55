"""Cross products and distances of points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .matmul import multiply

# Rows are taken so many at a time that their differences fit into the second-level cache.
_BLOCK_BYTES = 1 << 18


@kernel("_cross")
def cross(a: Array, b: Array, dim: int) -> Array:
    a, b = np.moveaxis(a, dim, 0), np.moveaxis(b, dim, 0)
    out = np.stack([a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)])
    return np.moveaxis(out, 0, dim)


@kernel("_cdist")
def cdist(x1: Array, x2: Array, p: float, product: bool) -> Array:
    if product:
        return _by_product(x1, x2)
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    out = np.empty((*batch, x1.shape[-2], x2.shape[-2]), dtype=x1.dtype)
    others = x2[..., None, :, :]
    each = math.prod(batch) * x2.shape[-2] * x2.shape[-1] * x2.itemsize
    step = max(1, _BLOCK_BYTES // max(each, 1))
    for start in range(0, x1.shape[-2], step):
        rows = slice(start, start + step)
        out[..., rows, :] = _norm(np.abs(x1[..., rows, None, :] - others), p)
    return out


def _norm(distances: Array, p: float) -> Any:
    if p == 0:
        return np.count_nonzero(distances, axis=-1)
    if p == 1:
        return distances.sum(-1)
    if p == 2:
        return np.sqrt(np.square(distances).sum(-1))
    if p == math.inf:
        return distances.max(-1, initial=0)
    return (distances**p).sum(-1) ** (1 / p)


def _by_product(x1: Array, x2: Array) -> Any:
    """|a - b|^2 = |a|^2 - 2 ab + |b|^2, held above the negative numbers that rounding makes."""
    first = np.square(x1).sum(-1)[..., :, None]
    second = np.square(x2).sum(-1)[..., None, :]
    squares = first + second - 2 * multiply(x1, np.swapaxes(x2, -2, -1))
    return np.sqrt(np.maximum(squares, 0))
