"""Softmax and its logarithm: rows of the kernel table."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native

FLOATS = frozenset((dt.float32, dt.float64, *dt.HALF))


def floats(*specs: Any) -> bool:
    """Whether all tensors are of types that row-wise kernels compute in float or double."""
    return all(s.dtype in FLOATS for s in specs)


def same_float(*specs: Any) -> bool:
    """Whether all tensors have one of those types, the same for all."""
    return specs[0].dtype in FLOATS and all(s.dtype is specs[0].dtype for s in specs)


@native("_softmax", "softmax", accepts=floats)
def softmax(x: Any, dim: int) -> Any:
    return x, OUT, dim


@native("_log_softmax", "log_softmax", accepts=floats)
def log_softmax(x: Any, dim: int) -> Any:
    return x, OUT, dim


@native("_softmax_backward", "softmax_backward", accepts=same_float)
def softmax_backward(g: Any, y: Any, dim: int) -> Any:
    return g, y, OUT, _wrapped(dim, y.ndim)


@native("_log_softmax_backward", "log_softmax_backward", accepts=same_float)
def log_softmax_backward(g: Any, y: Any, dim: int) -> Any:
    return g, y, OUT, _wrapped(dim, y.ndim)


def _wrapped(dim: int, ndim: int) -> int:
    return dim + ndim if dim < 0 else dim
