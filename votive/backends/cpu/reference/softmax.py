"""Softmax kernels. Half types arrive as float32, so sums over long rows keep their digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array


def _shifted(x: Array, dim: int) -> Any:
    """`x - max(x)`: exponentials then lie in 0..1. A row of -inf becomes NaN, as in torch."""
    return x - np.max(x, axis=dim, keepdims=True) if x.size else x


def _axis(x: Array, dim: int) -> tuple[Any, Any]:
    """NumPy reduces a 0-d array over no axis at all."""
    return x, dim if x.ndim else ()


@kernel("_softmax")
def softmax(x: Array, dim: int) -> Array:
    x, axis = _axis(x, dim)
    e = np.exp(_shifted(x, axis))
    return e / np.sum(e, axis=axis, keepdims=True)


@kernel("_log_softmax")
def log_softmax(x: Array, dim: int) -> Array:
    x, axis = _axis(x, dim)
    shifted = _shifted(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@kernel("_softmax_backward")
def softmax_backward(g: Array, y: Array, dim: int) -> Array:
    g, axis = _axis(g, dim)
    return y * (g - np.sum(g * y, axis=axis, keepdims=True))


@kernel("_log_softmax_backward")
def log_softmax_backward(g: Array, y: Array, dim: int) -> Array:
    g, axis = _axis(g, dim)
    return g - np.exp(y) * np.sum(g, axis=axis, keepdims=True)
