"""Convolution on native kernels."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native


def floats(*specs: Any) -> bool:
    """Floats of one type, none of them empty."""
    kinds = (dt.float32, dt.float64, *dt.HALF)
    return specs[0].dtype in kinds and all(s.dtype is specs[0].dtype and s.numel for s in specs)


@native("_convolution", "convolution", accepts=floats)
def convolution(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return x, weight, bias, OUT, *stride, *padding, *dilation, groups


@native("_convolution_transpose", "convolution_transpose", accepts=floats)
def convolution_transpose(
    x: Any, weight: Any, bias: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    return x, weight, bias, OUT, *stride, *padding, *dilation, groups


@native("_convolution_weight", "convolution_weight", accepts=floats)
def convolution_weight(x: Any, grad: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    return x, grad, OUT, *stride, *padding, *dilation, groups
