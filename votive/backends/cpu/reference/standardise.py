"""Statistics over axes on NumPy, for all norms. Half types arrive as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

NOTHING = np.empty(0, np.float32)


def total(x: Any, axes: tuple[int, ...], keepdims: bool = True) -> Any:
    """A sum carried in float64: a batch may have millions of values per channel."""
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=np.float64)


def mean_of(x: Any, axes: tuple[int, ...]) -> Any:
    """The mean, with no warning for no elements."""
    return (total(x, axes) / max(math.prod(x.shape[a] for a in axes), 1)).astype(x.dtype)


def moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Mean and biased variance, the latter from differences: squares of large means cancel."""
    mean = mean_of(x, axes)
    return mean, mean_of(np.square(x - mean), axes)


def reciprocal_root(var: Any, eps: float) -> Any:
    return (1 / np.sqrt(var.astype(np.float64) + eps)).astype(var.dtype)


def affine(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def standardise_gradient(g: Any, x: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """See `votive/ops/standardise.py`."""
    return rstd * (g - mean_of(g, axes) - x * mean_of(g * x, axes))
