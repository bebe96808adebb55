"""Softmax and its logarithm: rows of the kernel table."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import floats, same_float
from .rows import OUT, native


@native("_softmax", "softmax", accepts=floats)
def softmax(x: Slot, dim: int) -> Args:
    return x, OUT, dim


@native("_log_softmax", "log_softmax", accepts=floats)
def log_softmax(x: Slot, dim: int) -> Args:
    return x, OUT, dim


@native("_softmax_backward", "softmax_backward", accepts=same_float)
def softmax_backward(g: Slot, y: Slot, dim: int) -> Args:
    return g, y, OUT, _wrapped(dim, y.ndim)


@native("_log_softmax_backward", "log_softmax_backward", accepts=same_float)
def log_softmax_backward(g: Slot, y: Slot, dim: int) -> Args:
    return g, y, OUT, _wrapped(dim, y.ndim)


def _wrapped(dim: int, ndim: int) -> int:
    return dim + ndim if dim < 0 else dim
