"""group_norm on NumPy. Half types arrive as float32."""

from __future__ import annotations

import math
from typing import Any

from ...base import kernel
from ..arrays import Array
from .standardise import NOTHING, affine, moments, reciprocal_root, standardise_gradient, total


def _grouped(x: Array, groups: int) -> Any:
    """(N, groups, channels of a group, everything else)."""
    n, channels, *rest = x.shape
    return x.reshape(n, groups, channels // groups, math.prod(rest))


def _by_group(parameter: Array | None, groups: int) -> Any:
    return None if parameter is None else parameter.reshape(groups, -1, 1)


@kernel("_group_norm")
def group_norm(x: Array, weight: Array | None, bias: Array | None, groups: int, eps: float) -> tuple[Array, ...]:
    centred, mean, var = moments(_grouped(x, groups), (2, 3))
    rstd = reciprocal_root(var, eps, x.dtype)
    y = affine(centred * rstd, _by_group(weight, groups), _by_group(bias, groups))
    return y.reshape(x.shape), mean[..., 0, 0], rstd[..., 0, 0]


@kernel("_group_norm_backward")
def group_norm_backward(
    g: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, groups: int, by_input: bool, by_affine: bool
) -> tuple[Array, ...]:
    shape, g, x = x.shape, _grouped(g, groups), _grouped(x, groups)
    rstd = rstd[..., None, None]
    y = (x - mean[..., None, None]) * rstd
    h = affine(g, _by_group(weight, groups), None)
    return (
        standardise_gradient(h, y, rstd, (2, 3)).reshape(shape) if by_input else NOTHING,
        total(g * y, (0, 3), False).reshape(-1) if by_affine else NOTHING,
        total(g, (0, 3), False).reshape(-1) if by_affine else NOTHING,
    )
