"""Normalisation on NumPy: statistics over axes, and batch_norm. Half types arrive as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel

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
    """See `votive/ops/batch_norm.py`."""
    return rstd * (g - mean_of(g, axes) - x * mean_of(g * x, axes))


def _channels(parameter: Any, ndim: int) -> Any:
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def _others(x: Any) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


@kernel("_batch_norm")
def batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    mean, var = moments(x, _others(x))
    y = (x - mean) * reciprocal_root(var, eps)
    y = affine(y, _channels(weight, x.ndim), _channels(bias, x.ndim))
    return y, mean.reshape(-1), var.reshape(-1)


@kernel("_batch_norm_backward")
def batch_norm_backward(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float, by_input: bool, by_affine: bool
) -> Any:
    axes = _others(x)
    rstd = _channels(reciprocal_root(var, eps), x.ndim)
    y = (x - _channels(mean, x.ndim)) * rstd
    h = affine(g, _channels(weight, x.ndim), None)
    return (
        standardise_gradient(h, y, rstd, axes) if by_input else NOTHING,
        total(g * y, axes, False) if by_affine else NOTHING,
        total(g, axes, False) if by_affine else NOTHING,
    )
