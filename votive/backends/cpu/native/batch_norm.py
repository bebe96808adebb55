"""batch_norm in training and its running statistics: rows of the kernel table."""

from __future__ import annotations

from typing import Any

from .rows import OUT, OUT1, OUT2, native
from .softmax import floats


@native("_batch_norm", "batch_norm", accepts=floats)
def batch_norm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    return (x, weight, bias, OUT, OUT1, OUT2, float(eps)) if x.numel else None


@native("_batch_norm_backward", "batch_norm_backward", accepts=floats)
def batch_norm_backward(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float, by_input: bool, by_affine: bool
) -> Any:
    if not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, var, weight, OUT if by_input else None, *affine, 0, float(eps)


@native("_batch_norm_by", "batch_norm_by", accepts=floats)
def batch_norm_by(x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float) -> Any:
    return (x, mean, var, weight, bias, OUT, float(eps)) if x.numel else None


@native("_batch_norm_by_backward", "batch_norm_backward", accepts=floats)
def batch_norm_by_backward(
    g: Any, x: Any, mean: Any, var: Any, weight: Any, eps: float, by_input: bool, by_affine: bool
) -> Any:
    if not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, var, weight, OUT if by_input else None, *affine, 1, float(eps)


@native("_move_statistics", "move_statistics", accepts=floats)
def move_statistics(mean: Any, var: Any, means: Any, variances: Any, count: int, momentum: Any) -> Any:
    if not means.contiguous or not variances.contiguous or not isinstance(momentum.spec, float):
        return None
    return mean, var, means, variances, count, momentum
