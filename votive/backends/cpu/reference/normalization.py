"""layer_norm and rms_norm on NumPy. Half types arrive as float32."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .standardise import NOTHING, affine, mean_of, moments, reciprocal_root, standardise_gradient, total


def _axes(x: Array, dims: int) -> tuple[Ints, Ints]:
    """The leading axes, and the trailing ones that are normalised over."""
    split = x.ndim - dims
    return tuple(range(split)), tuple(range(split, x.ndim))


@kernel("_layer_norm")
def layer_norm(x: Array, weight: Array | None, bias: Array | None, dims: int, eps: float) -> tuple[Array, ...]:
    centred, mean, var = moments(x, _axes(x, dims)[1])
    rstd = reciprocal_root(var, eps, x.dtype)
    return affine(centred * rstd, weight, bias), mean, rstd


@kernel("_layer_norm_backward")
def layer_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, dims: int, by_input: bool, by_affine: bool
) -> tuple[Array, ...]:
    rows, axes = _axes(x, dims)
    y = (x - mean) * rstd
    return (
        standardise_gradient(affine(g, weight, None), y, rstd, axes) if by_input else NOTHING,
        total(g * y, rows, False) if by_affine else NOTHING,
        total(g, rows, False) if by_affine else NOTHING,
    )


@kernel("_rms_norm")
def rms_norm(x: Array, weight: Array | None, dims: int, eps: float) -> tuple[Array, ...]:
    rstd = reciprocal_root(mean_of(np.square(x), _axes(x, dims)[1]), eps, x.dtype)
    return affine(x * rstd, weight, None), rstd


@kernel("_rms_norm_backward")
def rms_norm_backward(
    g: Array, x: Array, rstd: Array, weight: Array | None, dims: int, by_input: bool, by_weight: bool
) -> tuple[Array, ...]:
    rows, axes = _axes(x, dims)
    y, h = x * rstd, affine(g, weight, None)
    return (
        rstd * (h - y * mean_of(h * y, axes).astype(y.dtype)) if by_input else NOTHING,
        total(g * y, rows, False) if by_weight else NOTHING,
    )
