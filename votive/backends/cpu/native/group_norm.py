"""group_norm on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import floats
from .normalization import dense
from .rows import OUT, OUT1, OUT2, native


@native("_group_norm", "group_norm", accepts=floats)
def group_norm(x: Slot, weight: Slot | None, bias: Slot | None, groups: int, eps: float) -> Args:
    return (x, weight, bias, OUT, OUT1, OUT2, groups, float(eps)) if x.numel else None


@native("_group_norm_backward", "group_norm_backward", accepts=floats)
def group_norm_backward(
    g: Slot, x: Slot, mean: Slot, rstd: Slot, weight: Slot | None, groups: int, by_input: bool, by_affine: bool
) -> Args:
    if not dense(mean, rstd) or not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, rstd, weight, OUT if by_input else None, *affine, groups
