"""Convolution on native kernels."""

from __future__ import annotations

from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import same_float
from .rows import OUT, native


def _filled(*specs: Spec) -> bool:
    """Floats of one type, none of them empty."""
    return same_float(*specs) and all(s.numel for s in specs)


@native("_convolution", "convolution", accepts=_filled)
def convolution(
    x: Slot, weight: Slot, bias: Slot | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Args:
    return x, weight, bias, OUT, *stride, *padding, *dilation, groups


@native("_convolution_transpose", "convolution_transpose", accepts=_filled)
def convolution_transpose(
    x: Slot, weight: Slot, bias: Slot | None, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Args:
    return x, weight, bias, OUT, *stride, *padding, *dilation, groups


@native("_convolution_weight", "convolution_weight", accepts=_filled)
def convolution_weight(
    x: Slot, grad: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Args:
    return x, grad, OUT, *stride, *padding, *dilation, groups
