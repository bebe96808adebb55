"""Native layers with int8 weights, and numbers as codes."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, native

# Which instructions sum: 0 the best there are; tests force others (src/kernels/int8_product.h).
WAY = [0]


@native("_quantize_affine", "quantize_affine", optional=True)
def quantize_affine(x: Slot, scale: Slot, zero_point: Slot, dtype: dt.dtype) -> Args | None:
    if scale.spec is not float or zero_point.spec is not int or dtype not in (dt.uint8, dt.int8, dt.int32):
        return None
    return x, OUT, zero_point, scale


@native("_int8_linear", "int8_linear", optional=True)
def int8_linear(
    x: Slot,
    packed: Slot,
    sums: Slot,
    scales: Slot,
    zeros: Slot | None,
    bias: Slot | None,
    scale: Slot,
    zero_point: Slot,
    out_scale: Slot,
    out_zero_point: Slot,
    relu: bool,
    dtype: dt.dtype,
) -> Args | None:
    if not _typed(scale, out_scale, zero_point, out_zero_point):
        return None
    weight = (packed, sums, scales, zeros, bias)
    return x, *weight, OUT, zero_point, out_zero_point, int(relu), WAY[0], scale, out_scale


@native("_int8_linear_dynamic", "int8_linear_dynamic", optional=True)
def int8_linear_dynamic(
    x: Slot, packed: Slot, sums: Slot, scales: Slot, zeros: Slot | None, bias: Slot | None, highest: int, relu: bool
) -> Args:
    return x, packed, sums, scales, zeros, bias, OUT, highest, int(relu), WAY[0]


@native("_int8_conv", "int8_conv", optional=True)
def int8_conv(
    x: Slot,
    packed: Slot,
    sums: Slot,
    scales: Slot,
    zeros: Slot | None,
    bias: Slot | None,
    scale: Slot,
    zero_point: Slot,
    out_scale: Slot,
    out_zero_point: Slot,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    relu: bool,
    dtype: dt.dtype,
) -> Args | None:
    if not _typed(scale, out_scale, zero_point, out_zero_point):
        return None
    weight = (packed, sums, scales, zeros, bias)
    sizes = (*kernel, *stride, *padding, *dilation)
    return x, *weight, OUT, zero_point, out_zero_point, int(relu), WAY[0], groups, *sizes, scale, out_scale


def _typed(scale: Slot, out_scale: Slot, zero_point: Slot, out_zero_point: Slot) -> bool:
    return scale.spec is out_scale.spec is float and zero_point.spec is out_zero_point.spec is int
