"""layer_norm, rms_norm and group_norm: rows of the kernel table.

Results that nobody asked for are empty; kernels see None in their place.
"""

from __future__ import annotations

from typing import Any

from .rows import OUT, OUT1, OUT2, native
from .softmax import floats


def _dense(*slots: Any) -> bool:
    return all(s.contiguous for s in slots)


@native("_layer_norm", "layer_norm", accepts=floats)
def layer_norm(x: Any, weight: Any, bias: Any, dims: int, eps: float) -> Any:
    return x, weight, bias, OUT, OUT1, OUT2, dims, float(eps)


@native("_layer_norm_backward", "layer_norm_backward", accepts=floats)
def layer_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_affine: bool
) -> Any:
    if not _dense(mean, rstd) or not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, rstd, weight, OUT if by_input else None, *affine, dims


@native("_rms_norm", "rms_norm", accepts=floats)
def rms_norm(x: Any, weight: Any, dims: int, eps: float) -> Any:
    return x, weight, OUT, OUT1, dims, float(eps)


@native("_rms_norm_backward", "rms_norm_backward", accepts=floats)
def rms_norm_backward(g: Any, x: Any, rstd: Any, weight: Any, dims: int, by_input: bool, by_weight: bool) -> Any:
    if not rstd.contiguous or not x.numel:
        return None
    return g, x, rstd, weight, OUT if by_input else None, OUT1 if by_weight else None, dims


@native("_group_norm", "group_norm", accepts=floats)
def group_norm(x: Any, weight: Any, bias: Any, groups: int, eps: float) -> Any:
    return (x, weight, bias, OUT, OUT1, OUT2, groups, float(eps)) if x.numel else None


@native("_group_norm_backward", "group_norm_backward", accepts=floats)
def group_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, groups: int, by_input: bool, by_affine: bool
) -> Any:
    if not _dense(mean, rstd) or not x.numel:
        return None
    affine = (OUT1, OUT2) if by_affine else (None, None)
    return g, x, mean, rstd, weight, OUT if by_input else None, *affine, groups
