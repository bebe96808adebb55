"""layer_norm, rms_norm and group_norm: rows of the kernel table.

Results that nobody asked for are empty; kernels see None in their place.
"""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import floats
from .rows import OUT, OUT1, OUT2, native


def dense(*slots: Slot) -> bool:
    """Whether all are contiguous."""
    return all(s.contiguous for s in slots)


@native("_layer_norm", "layer_norm", accepts=floats)
def layer_norm(x: Slot, weight: Slot | None, bias: Slot | None, dims: int, eps: float) -> Args:
    return x, weight, bias, OUT, OUT1, OUT2, dims, float(eps)


@native("_layer_norm_backward", "layer_norm_backward", accepts=floats)
def layer_norm_backward(
    g: Slot, x: Slot, mean: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_affine: bool
) -> Args:
    if not dense(mean, rstd) or not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, rstd, weight, OUT if by_input else None, *affine, dims


@native("_rms_norm", "rms_norm", accepts=floats)
def rms_norm(x: Slot, weight: Slot | None, dims: int, eps: float) -> Args:
    return x, weight, OUT, OUT1, dims, float(eps)


@native("_rms_norm_backward", "rms_norm_backward", accepts=floats)
def rms_norm_backward(
    g: Slot, x: Slot, rstd: Slot, weight: Slot | None, dims: int, by_input: bool, by_weight: bool
) -> Args:
    if not rstd.contiguous or not x.numel:
        return None
    return g, x, rstd, weight, OUT if by_input else None, OUT1 if by_weight else None, dims
