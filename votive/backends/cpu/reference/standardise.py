"""Statistics over axes on NumPy, for all norms. Half types arrive as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays import Array, Ints

NOTHING = np.empty(0, np.float32)


def total(x: Array, axes: Ints, keepdims: bool = True) -> Any:
    """A sum carried in float64: a batch may have millions of values per channel."""
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=np.float64)


def mean_of(x: Array, axes: Ints) -> Any:
    """The mean in float64, with no warning for no elements."""
    return total(x, axes) / max(math.prod(x.shape[a] for a in axes), 1)


def moments(x: Array, axes: Ints) -> tuple[Any, Any, Any]:
    """`x - mean`, the mean, and the biased variance, which is that of the differences.

    Squares of large means would cancel; so would a mean that was rounded before it is taken off.
    """
    mean = mean_of(x, axes)
    centred = (x - mean).astype(x.dtype)
    return centred, mean.astype(x.dtype), mean_of(np.square(centred), axes)


def reciprocal_root(var: Array, eps: float, dtype: np.dtype[Any]) -> Array:
    return (1 / np.sqrt(var + eps)).astype(dtype)


def affine(x: Array, weight: Array | None, bias: Array | None) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def standardise_gradient(g: Array, x: Array, rstd: Array, axes: Ints) -> Any:
    """See `votive/ops/standardise.py`."""
    along, across = (mean_of(v, axes).astype(x.dtype) for v in (g * x, g))
    return rstd * (g - across - x * along)
