"""Lengths of vectors. Knows arrays only."""

from __future__ import annotations

import math

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .reduction import total


@kernel("_vector_norm")
def vector_norm(x: Array, ord: float, dim: Ints, keepdim: bool) -> Array:
    size = np.abs(x)
    if ord == math.inf:
        return np.max(size, axis=dim, keepdims=keepdim)
    if ord == -math.inf:
        return np.min(size, axis=dim, keepdims=keepdim)
    if ord == 0:
        return np.sum(size != 0, axis=dim, keepdims=keepdim)
    if ord == 1:
        return total(size, dim, keepdim)
    if ord == 2:
        return np.sqrt(total(size * size, dim, keepdim))
    return total(size**ord, dim, keepdim) ** (1 / ord)
