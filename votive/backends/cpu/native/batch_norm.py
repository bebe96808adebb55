"""batch_norm in training and its running statistics: rows of the kernel table."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import floats
from .rows import OUT, OUT1, OUT2, native


@native("_batch_norm", "batch_norm", accepts=floats)
def batch_norm(x: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Args:
    return (x, weight, bias, OUT, OUT1, OUT2, float(eps)) if x.numel else None


@native("_batch_norm_backward", "batch_norm_backward", accepts=floats)
def batch_norm_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Args:
    if not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, var, weight, OUT if by_input else None, *affine, 0, float(eps)


@native("_batch_norm_by", "batch_norm_by", accepts=floats)
def batch_norm_by(x: Slot, mean: Slot, var: Slot, weight: Slot | None, bias: Slot | None, eps: float) -> Args:
    return (x, mean, var, weight, bias, OUT, float(eps)) if x.numel else None


@native("_batch_norm_by_backward", "batch_norm_backward", accepts=floats)
def batch_norm_by_backward(
    g: Slot, x: Slot, mean: Slot, var: Slot, weight: Slot | None, eps: float, by_input: bool, by_affine: bool
) -> Args:
    if not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, var, weight, OUT if by_input else None, *affine, 1, float(eps)


@native("_move_statistics", "move_statistics", accepts=floats)
def move_statistics(mean: Slot, var: Slot, means: Slot, variances: Slot, count: int, momentum: Slot) -> Args:
    if not means.contiguous or not variances.contiguous or not isinstance(momentum.spec, float):
        return None
    return mean, var, means, variances, count, momentum
