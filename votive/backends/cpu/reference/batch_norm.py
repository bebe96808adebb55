"""batch_norm on NumPy. Half types arrive as float32."""

from __future__ import annotations

from typing import Any

from ...base import kernel
from .standardise import NOTHING, affine, moments, reciprocal_root, standardise_gradient, total


def _channels(parameter: Any, ndim: int) -> Any:
    return None if parameter is None else parameter.reshape(1, -1, *[1] * (ndim - 2))


def _others(x: Any) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


@kernel("_batch_norm")
def batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    centred, mean, var = moments(x, _others(x))
    y = centred * reciprocal_root(var, eps, x.dtype)
    y = affine(y, _channels(weight, x.ndim), _channels(bias, x.ndim))
    return y, mean.reshape(-1), var.reshape(-1)


@kernel("_batch_norm_backward")
def batch_norm_backward(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float, by_input: bool, by_affine: bool
) -> Any:
    axes = _others(x)
    rstd = _channels(reciprocal_root(var, eps, x.dtype), x.ndim)
    y = (x - _channels(mean, x.ndim)) * rstd
    h = affine(g, _channels(weight, x.ndim), None)
    return (
        standardise_gradient(h, y, rstd, axes) if by_input else NOTHING,
        total(g * y, axes, False) if by_affine else NOTHING,
        total(g, axes, False) if by_affine else NOTHING,
    )
