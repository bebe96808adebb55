"""layer_norm, rms_norm and group_norm on NumPy. Half types arrive as float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .batch_norm import (
    NOTHING,
    affine,
    mean_of,
    moments,
    reciprocal_root,
    standardise_gradient,
    total,
)


def _axes(x: Any, dims: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The leading axes, and the trailing ones that are normalised over."""
    split = x.ndim - dims
    return tuple(range(split)), tuple(range(split, x.ndim))


@kernel("_layer_norm")
def layer_norm(x: Any, weight: Any, bias: Any, dims: int, eps: float) -> Any:
    mean, var = moments(x, _axes(x, dims)[1])
    rstd = reciprocal_root(var, eps)
    return affine((x - mean) * rstd, weight, bias), mean, rstd


@kernel("_layer_norm_backward")
def layer_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_affine: bool
) -> Any:
    rows, axes = _axes(x, dims)
    y = (x - mean) * rstd
    return (
        standardise_gradient(affine(g, weight, None), y, rstd, axes) if by_input else NOTHING,
        total(g * y, rows, False) if by_affine else NOTHING,
        total(g, rows, False) if by_affine else NOTHING,
    )


@kernel("_rms_norm")
def rms_norm(x: Any, weight: Any, dims: int, eps: float) -> Any:
    rstd = reciprocal_root(mean_of(np.square(x), _axes(x, dims)[1]), eps)
    return affine(x * rstd, weight, None), rstd


@kernel("_rms_norm_backward")
def rms_norm_backward(
    g: Any, x: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_weight: bool
) -> Any:
    rows, axes = _axes(x, dims)
    y, h = x * rstd, affine(g, weight, None)
    return (
        rstd * (h - y * mean_of(h * y, axes)) if by_input else NOTHING,
        total(g * y, rows, False) if by_weight else NOTHING,
    )


def _grouped(x: Any, groups: int) -> Any:
    """(N, groups, channels of a group, everything else)."""
    n, channels, *rest = x.shape
    return x.reshape(n, groups, channels // groups, int(np.prod(rest)))


def _by_group(parameter: Any, groups: int) -> Any:
    return None if parameter is None else parameter.reshape(groups, -1, 1)


@kernel("_group_norm")
def group_norm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    parts = _grouped(x, groups)
    mean, var = moments(parts, (2, 3))
    rstd = reciprocal_root(var, eps)
    y = affine((parts - mean) * rstd, _by_group(weight, groups), _by_group(bias, groups))
    return y.reshape(x.shape), mean[..., 0, 0], rstd[..., 0, 0]


@kernel("_group_norm_backward")
def group_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, groups: int, by_input: bool, by_affine: bool
) -> Any:
    shape, g, x = x.shape, _grouped(g, groups), _grouped(x, groups)
    rstd = rstd[..., None, None]
    y = (x - mean[..., None, None]) * rstd
    h = affine(g, _by_group(weight, groups), None)
    return (
        standardise_gradient(h, y, rstd, (2, 3)).reshape(shape) if by_input else NOTHING,
        total(g * y, (0, 3), False).reshape(-1) if by_affine else NOTHING,
        total(g, (0, 3), False).reshape(-1) if by_affine else NOTHING,
    )
