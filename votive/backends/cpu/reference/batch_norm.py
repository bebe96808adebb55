"""batch_norm on NumPy. Half types arrive as float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .standardise import NOTHING, affine, moments, reciprocal_root, standardise_gradient, total


def _channels(parameter: Array | None, ndim: int) -> Any:
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def _others(x: Array) -> Ints:
    return (0, *range(2, x.ndim))


@kernel("_batch_norm")
def batch_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Array, ...]:
    centred, mean, var = moments(x, _others(x))
    y = centred * reciprocal_root(var, eps, x.dtype)
    y = affine(y, _channels(weight, x.ndim), _channels(bias, x.ndim))
    return y, mean.reshape(-1), var.reshape(-1)


@kernel("_batch_norm_backward")
def batch_norm_backward(
    g: Array, x: Array, mean: Array, var: Array, weight: Array | None, eps: float, by_input: bool, by_affine: bool
) -> tuple[Array, ...]:
    axes = _others(x)
    rstd = _channels(reciprocal_root(var, eps, x.dtype), x.ndim)
    y = (x - _channels(mean, x.ndim)) * rstd
    h = affine(g, _channels(weight, x.ndim), None)
    return (
        standardise_gradient(h, y, rstd, axes) if by_input else NOTHING,
        total(g * y, axes, False) if by_affine else NOTHING,
        total(g, axes, False) if by_affine else NOTHING,
    )


@kernel("_batch_norm_by")
def batch_norm_by(x: Array, mean: Array, var: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    scale = affine(1 / np.sqrt(var + var.dtype.type(eps)), weight, None)
    mean, scale, bias = (_channels(p, x.ndim) for p in (mean, scale, bias))
    return affine((x - mean) * scale, None, bias)


@kernel("_batch_norm_by_backward")
def batch_norm_by_backward(
    g: Array, x: Array, mean: Array, var: Array, weight: Array | None, eps: float, by_input: bool, by_affine: bool
) -> tuple[Array, ...]:
    axes = _others(x)
    rstd = _channels(reciprocal_root(var, eps, x.dtype), x.ndim)
    y = (x - _channels(mean, x.ndim)) * rstd if by_affine else x
    return (
        g * affine(rstd, _channels(weight, x.ndim), None) if by_input else NOTHING,
        total(g * y, axes, False) if by_affine else NOTHING,
        total(g, axes, False) if by_affine else NOTHING,
    )


@kernel("_move_statistics", widen=False)
def move_statistics(mean: Array, var: Array, means: Array, variances: Array, count: int, momentum: float) -> tuple[()]:
    _move(mean, means, momentum)
    with np.errstate(all="ignore"):
        squares = (variances * variances.dtype.type(count)).astype(var.dtype)
        _move(var, _rounded(var, _wide(squares) / (count - 1)), momentum)
    return ()


def _wide(x: Array) -> Array:
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def _rounded(like: Array, x: Array) -> Array:
    """`x` as the statistic would hold it, for computing on."""
    return _wide(x.astype(like.dtype))


def _move(running: Array, new: Array, momentum: float) -> None:
    """Each row moves the statistic for itself; every step rounds to its type."""
    if not running.size:
        return
    rows = _rounded(running, new.reshape(-1, running.size))
    real = rows.dtype.type
    kept = _rounded(running, _wide(running) * real(1 - momentum))
    share = _rounded(running, np.asarray(momentum))
    running[...] = _rounded(running, kept + rows * share).mean(0).astype(running.dtype)
