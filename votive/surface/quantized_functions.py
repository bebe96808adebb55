"""Functions that make quantized tensors from numbers or codes, with torch's names, and codes into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..backends.cpu.reference.int8 import choose
from ..core import affine
from ..core import dtype as dt
from ..core.affine import quantized_dtype
from ..core.device import DeviceLike
from ..core.errors import received
from ..ops.registry import F
from ..tensor import Tensor
from .quantized_tensor import QuantizedTensor, made_of

Number = float | Tensor


def _float(op: str, input: object) -> Tensor:
    if not isinstance(input, Tensor) or input.dtype is not dt.float32:
        raise RuntimeError(f"{op}: Quantize only works on Float Tensor, got {received(input)}.")
    return input


def _kind(op: str, dtype: object) -> quantized_dtype:
    if not isinstance(dtype, quantized_dtype):
        raise RuntimeError(f"{op}: dtype is one of {', '.join(affine.TYPES)}, got {received(dtype)}.")
    return dtype


def _in_range(op: str, zero_point: int, kind: quantized_dtype) -> None:
    if zero_point < kind.low:
        raise RuntimeError(f"{op}: zero_point {zero_point} is below lower bound {kind.low} of {kind!r}.")
    if zero_point > kind.high:
        raise RuntimeError(f"{op}: zero_point {zero_point} is above upper bound {kind.high} of {kind!r}.")


def quantize_per_tensor(
    input: Tensor | Sequence[Tensor], scale: Number, zero_point: int | Tensor, dtype: quantized_dtype
) -> Any:
    """Numbers as codes with one scale: `round(input / scale + zero_point)`, halves to even, within the type's range.

    A list of tensors is quantized with a scale and a zero point each.

    >>> votive.quantize_per_tensor(votive.tensor([-1.0, 0.5, 100.0]), 0.5, 10, votive.quint8).int_repr()
    tensor([  8,  11, 210], dtype=votive.uint8)
    """
    op = "quantize_per_tensor"
    if isinstance(input, (list, tuple)):
        if not isinstance(scale, Tensor) or not isinstance(zero_point, Tensor):
            raise TypeError(f"{op}: a list of tensors takes tensors of scales and zero points.")
        each = zip(input, scale.tolist(), zero_point.tolist(), strict=True)
        return tuple(quantize_per_tensor(x, s, z, dtype) for x, s, z in each)
    x, kind = _float(op, input), _kind(op, dtype)
    step, zero = float(scale), int(zero_point)
    _in_range(op, zero, kind)
    return made_of(F._quantize_affine(x.detach(), step, zero, kind.codes), kind, step, zero)


def quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: quantized_dtype
) -> QuantizedTensor:
    """Numbers as codes with a scale and a zero point for each place along a dimension.

    >>> x = votive.tensor([[1.0, 2.0], [10.0, 20.0]])
    >>> votive.quantize_per_channel(x, votive.tensor([0.5, 5.0]), votive.tensor([0, 0]), 0, votive.qint8).int_repr()
    tensor([[2, 4],
            [2, 4]], dtype=votive.int8)
    """
    op = "quantize_per_channel"
    x, kind = _float(op, input).detach(), _kind(op, dtype)
    if not 0 <= axis < x.ndim:
        raise RuntimeError(f"Channel axis out of range in per channel affine quantization. Got: {axis}")
    for name, value in (("scales", scales), ("zero_points", zero_points)):
        if value.ndim != 1 or value.shape[0] != x.shape[axis]:
            raise RuntimeError(f"{op}: number of elements in {name} must match channel size {x.shape[axis]}.")
    floats = zero_points.dtype.is_floating_point
    shape = tuple(-1 if d == axis else 1 for d in range(x.ndim))
    wide, zeros = F.reshape(scales.to(dt.float32), shape), F.reshape(zero_points.to(dt.float32), shape)
    for zero in [] if floats else zero_points.tolist():
        _in_range(op, zero, kind)
    codes = (x * (1 / wide) + zeros).round()
    nan = float(kind.high)
    bounded = codes.nan_to_num(nan=nan).to(dt.float64).clamp(kind.low, kind.high).to(kind.codes)
    kept = zero_points.to(dt.float32) if floats else zero_points.to(dt.int64)
    return made_of(bounded, kind, scales.to(dt.float32 if floats else dt.float64), kept, axis)


def quantize_per_tensor_dynamic(input: Tensor, dtype: quantized_dtype, reduce_range: bool) -> QuantizedTensor:
    """Numbers as codes, with a scale and a zero point that are chosen by their least and greatest.

    >>> votive.quantize_per_tensor_dynamic(votive.tensor([-1.0, 0.0, 2.0]), votive.quint8, False).q_zero_point()
    85
    """
    op = "quantize_per_tensor_dynamic"
    x, kind = _float(op, input), _kind(op, dtype)
    if kind not in (affine.qint8, affine.quint8):
        raise RuntimeError(f"{op}: dtype is qint8 or quint8, got {kind!r}.")
    low, high = (float(x.detach().min()), float(x.detach().max())) if x.numel() else (0.0, 0.0)
    if not (low >= -3.5e38 and high <= 3.5e38):
        raise RuntimeError(f"{op}: the input holds infinities or NaN.")
    scale, zero = _exact(low, high, 127 if reduce_range else 255)
    shift = 0 if kind is affine.quint8 else -64 if reduce_range else -128
    out: QuantizedTensor = quantize_per_tensor(x, scale, zero + shift, kind)
    return out


def _exact(low: float, high: float, highest: int) -> tuple[float, int]:
    """As `choose`, with the scale in double precision, as torch's tensors keep it."""
    scale, zero = choose(low, high, highest)
    wide = (max(high, 0.0) - min(low, 0.0)) / highest
    return (wide if abs(wide - scale) <= 1e-6 * scale and wide >= 6.1e-5 else scale), zero


def dequantize(tensor: Tensor | Sequence[Tensor]) -> Any:
    """Quantized tensors as numbers; of a list each.

    >>> votive.dequantize(votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8))
    tensor([1., 1.])
    """
    if isinstance(tensor, (list, tuple)):
        return tuple(dequantize(t) for t in tensor)
    if isinstance(tensor, QuantizedTensor):
        return tensor.dequantize()
    if not isinstance(tensor, Tensor):
        raise TypeError(f"dequantize: takes a tensor or some of them, got {received(tensor)}.")
    return tensor.dequantize() if hasattr(tensor, "dequantize") else tensor.to(dt.float32)


def int_repr(input: Tensor) -> Tensor:
    """The codes of a quantized tensor.

    >>> x = votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8)
    >>> votive.int_repr(x)
    tensor([5, 5], dtype=votive.uint8)
    """
    return quantized("int_repr", input).int_repr()


def q_scale(input: Tensor) -> float:
    """The scale of a quantized tensor.

    >>> x = votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8)
    >>> votive.q_scale(x)
    0.5
    """
    return quantized("q_scale", input).q_scale()


def q_zero_point(input: Tensor) -> int:
    """The code of zero of a quantized tensor.

    >>> x = votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8)
    >>> votive.q_zero_point(x)
    3
    """
    return quantized("q_zero_point", input).q_zero_point()


def q_per_channel_scales(input: Tensor) -> Tensor:
    """The scales of a quantized tensor that has some per channel.

    >>> steps = votive.tensor([0.5, 0.25]), votive.tensor([3, 4])
    >>> x = votive.quantize_per_channel(votive.ones(2, 2), *steps, 0, votive.quint8)
    >>> votive.q_per_channel_scales(x)
    tensor([0.5000, 0.2500], dtype=votive.float64)
    """
    return quantized("q_per_channel_scales", input).q_per_channel_scales()


def q_per_channel_zero_points(input: Tensor) -> Tensor:
    """The codes of zero of a quantized tensor that has some per channel.

    >>> steps = votive.tensor([0.5, 0.25]), votive.tensor([3, 4])
    >>> x = votive.quantize_per_channel(votive.ones(2, 2), *steps, 0, votive.quint8)
    >>> votive.q_per_channel_zero_points(x)
    tensor([3, 4])
    """
    return quantized("q_per_channel_zero_points", input).q_per_channel_zero_points()


def q_per_channel_axis(input: Tensor) -> int:
    """The dimension whose places have scales of their own.

    >>> steps = votive.tensor([0.5, 0.25]), votive.tensor([3, 4])
    >>> x = votive.quantize_per_channel(votive.ones(2, 2), *steps, 0, votive.quint8)
    >>> votive.q_per_channel_axis(x)
    0
    """
    return quantized("q_per_channel_axis", input).q_per_channel_axis()


def quantized(op: str, input: object) -> QuantizedTensor:
    """The argument, which must be quantized."""
    if not isinstance(input, QuantizedTensor):
        raise NotImplementedError(f"{op}: takes a quantized tensor, got {received(input)}.")
    return input


def empty_affine_quantized(
    size: Sequence[int], *, scale: float = 1.0, zero_point: int = 0, dtype: quantized_dtype, device: DeviceLike = None
) -> QuantizedTensor:
    """A quantized tensor whose codes are the zero point."""
    kind = _kind("_empty_affine_quantized", dtype)
    codes = F.full(tuple(size), zero_point, dtype=kind.codes, device=device)
    return made_of(codes, kind, scale, zero_point)


def empty_quantized(size: Sequence[int], qtensor: Tensor) -> QuantizedTensor:
    """A quantized tensor of a shape, with the scale and zero point of another.

    >>> x = votive.quantize_per_tensor(votive.ones(2), 0.5, 3, votive.quint8)
    >>> votive.empty_quantized([3], x).dequantize()
    tensor([0., 0., 0.])
    """
    like = quantized("empty_quantized", qtensor)
    dtype, device = like._kind_of, like.device
    return empty_affine_quantized(
        size, scale=like.q_scale(), zero_point=like.q_zero_point(), dtype=dtype, device=device
    )


def per_tensor_quantized(input: Tensor, scale: float, zero_point: int) -> QuantizedTensor:
    """A quantized tensor over codes."""
    return made_of(input, _of_codes(input), scale, zero_point)


def per_channel_quantized(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> QuantizedTensor:
    """A quantized tensor over codes, with scales along a dimension."""
    floats = zero_point.dtype.is_floating_point
    zeros = zero_point.to(dt.float32 if floats else dt.int64)
    return made_of(input, _of_codes(input), scale.to(dt.float32 if floats else dt.float64), zeros, axis)


def _of_codes(input: Tensor) -> quantized_dtype:
    for kind in affine.TYPES.values():
        if kind.codes is input.dtype:
            return kind
    raise RuntimeError(f"codes are uint8, int8 or int32, got {input.dtype}.")
