"""What ONNX's operators on quantized numbers mean."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .read import Attributes, reads
from .read_layers import conv

A = Attributes
_RANGE = {dt.uint8: (0, 255), dt.int8: (-128, 127), dt.uint16: (0, 65535), dt.int16: (-32768, 32767)}


def _along(a: A, x: Tensor, part: Tensor) -> Tensor:
    """A scale or zero point per tensor, per slice of a dimension, or per block of it."""
    if part.ndim == 0 or (part.ndim == 1 and part.shape[0] == 1):
        return part.reshape(()) if part.ndim else part
    axis, block = a("axis", 1) % x.ndim, a("block_size", 0)
    if block:
        return F.narrow(F.repeat_interleave(part, block, axis), axis, 0, x.shape[axis])
    return part.reshape([-1 if d == axis else 1 for d in range(x.ndim)])


@reads("DequantizeLinear")
def dequantize(a: A, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Any:
    wide = F.to(x, dt.float32)
    if zero is not None:
        wide = wide - F.to(_along(a, x, zero), dt.float32)
    return F.to(wide * F.to(_along(a, x, scale), dt.float32), scale.dtype)


@reads("QuantizeLinear")
def quantize(a: A, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Any:
    from .load import dtype_of

    dtype = zero.dtype if zero is not None else dtype_of(a("output_dtype")) if a("output_dtype") else dt.uint8
    scaled = F.to(x, dt.float32) / F.to(_along(a, x, scale), dt.float32)
    shift = 0 if zero is None else F.to(_along(a, x, zero), dt.float32)
    if dtype not in _RANGE:
        top = float(dt.finfo(dtype).max)
        return F.to(F.clamp(scaled + shift, -top, top) if a("saturate", 1) else scaled + shift, dtype)
    return F.to(F.clamp(F.round(scaled) + shift, *_RANGE[dtype]), dtype)


@reads("DynamicQuantizeLinear")
def dynamic_quantize(a: A, x: Tensor) -> Any:
    low, high = F.clamp(F.amin(x), max=0), F.clamp(F.amax(x), min=0)
    scale = (high - low) / 255
    zero = F.clamp(F.round(-low / scale), 0, 255)
    return F.to(F.clamp(F.round(x / scale) + zero, 0, 255), dt.uint8), scale, F.to(zero, dt.uint8)


def _centred(x: Tensor, zero: Tensor | None, rows: bool) -> Tensor:
    if zero is None:
        return F.to(x, dt.int32)
    shift = F.to(zero, dt.int32)
    return F.to(x, dt.int32) - (shift.unsqueeze(-1) if rows and zero.ndim else shift)


@reads("MatMulInteger")
def matmul_integer(a: A, x: Tensor, y: Tensor, zero_x: Any = None, zero_y: Any = None) -> Any:
    return F.matmul(_centred(x, zero_x, True), _centred(y, zero_y, False))


@reads("ConvInteger")
def conv_integer(a: A, x: Tensor, w: Tensor, zero_x: Any = None, zero_w: Any = None) -> Any:
    shift = zero_w.reshape(-1, *[1] * (w.ndim - 1)) if zero_w is not None and zero_w.ndim else zero_w
    wide = conv(a, F.to(_centred(x, zero_x, False), dt.float64), F.to(_centred(w, shift, False), dt.float64))
    return F.to(wide, dt.int32)


@reads("QLinearMatMul")
def qlinear_matmul(
    a: A, x: Tensor, sx: Tensor, zx: Tensor, y: Tensor, sy: Tensor, zy: Tensor, so: Tensor, zo: Tensor
) -> Any:
    wide = F.to(F.matmul(_centred(x, zx, True), _centred(y, zy, False)), dt.float32)
    scale = F.to(sx, dt.float32).unsqueeze(-1) if sx.ndim else F.to(sx, dt.float32)
    made = F.round(wide * scale * F.to(sy, dt.float32) / F.to(so, dt.float32)) + F.to(zo, dt.float32)
    return F.to(F.clamp(made, *_RANGE[zo.dtype]), zo.dtype)


@reads("QLinearConv")
def qlinear_conv(
    a: A, x: Tensor, sx: Tensor, zx: Tensor, w: Tensor, sw: Tensor, zw: Tensor, so: Tensor, zo: Tensor, bias: Any = None
) -> Any:
    per = [-1, *[1] * (w.ndim - 2)]
    wide = F.to(conv_integer(a, x, w, zx, zw), dt.float32)
    if bias is not None:
        wide = wide + F.to(bias, dt.float32).reshape(per)
    scale = sw.reshape(per) if sw.ndim else sw
    made = F.round(wide * sx * scale / so) + F.to(zo, dt.float32)
    return F.to(F.clamp(made, *_RANGE[zo.dtype]), zo.dtype)
