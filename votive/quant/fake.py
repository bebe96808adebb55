"""Fake quantization: numbers rounded to what codes stand for, with gradients that pass straight through. Knows no
modules.
"""

from __future__ import annotations

from typing import Any

from ..autograd import no_grad
from ..autograd.function import Function
from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .range import channel_bounds, nudged_steps


def _along(value: Tensor, axis: int | None, ndim: int) -> Tensor:
    if axis is None:
        return value
    return value.view(tuple(-1 if d == axis else 1 for d in range(ndim)))


def _codes(x: Tensor, scale: Any, zero: Any) -> Tensor:
    """Codes without bounds: the product is rounded, then the zero added, in float32 as torch does."""
    wide = x if x.dtype is dt.float64 else x.to(dt.float32)
    return (wide * (1 / scale)).round() + zero


class _Fake(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, zero: Tensor, axis: int | None, low: int, high: int) -> Tensor:
        s, z = _along(scale, axis, x.ndim), _along(zero, axis, x.ndim)
        if z.dtype.is_floating_point:
            s, z = s.to(dt.float32), z.to(dt.float32)
        code = _codes(x, s, z)
        ctx.save_for_backward((code >= low) & (code <= high))
        return ((code.clamp(low, high) - z) * s).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        (inside,) = ctx.saved_tensors
        return g * inside, None, None, None, None, None


class _Learned(Function):
    """Learned step sizes (arXiv:1902.08153): the scale and the zero have gradients too."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, scale: Tensor, zero: Tensor, axis: int | None, low: int, high: int, factor: float
    ) -> Tensor:
        s = _along(scale, axis, x.ndim)
        z = _along((zero + 0.5).floor().clamp(low, high), axis, x.ndim)
        code = _codes(x, s, z)
        y = (code.clamp(low, high) - z) * s
        ctx.save_for_backward(x, s, z, code, y)
        ctx.how = (axis, low, high, factor, scale.shape)
        return y.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        x, s, z, code, y = ctx.saved_tensors
        axis, low, high, factor, shape = ctx.how
        under, over = code < low, code > high
        outside = under | over
        slope = F.where(under, low - z, F.where(over, high - z, (y - x) / s))
        by_scale, by_zero = g * slope * factor, F.where(outside, -g * s, F.zeros_like(g)) * factor
        dims = tuple(d for d in range(g.ndim) if d != axis)

        def summed(t: Tensor) -> Tensor:
            total: Tensor = t.sum(dims) if dims else t
            return total.reshape(shape)

        return g * ~outside, summed(by_scale), summed(by_zero), None, None, None, None


def _bounds(op: str, low: int, high: int) -> None:
    if low > high:
        raise RuntimeError(f"{op}: `quant_min` should be less than or equal to `quant_max`, got {low} and {high}.")


def _checked(op: str, x: Tensor, axis: int | None) -> None:
    if not isinstance(x, Tensor) or not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise RuntimeError(f"{op}: input must be a floating-point tensor, got {kind}.")
    if axis is not None and not 0 <= axis < x.ndim:
        raise RuntimeError(f"{op}: `axis` must be between 0 and number of dimensions of input, got {axis}.")


def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """What is left of numbers after rounding to codes: `(clamp(round(x / scale) + zero) - zero) * scale`.

    Gradients pass as they are where a code was in the range, and are zero elsewhere.

    >>> x = votive.tensor([0.24, 0.26, 9.0], requires_grad=True)
    >>> y = votive.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7)
    >>> y.sum().backward()
    >>> y.detach(), x.grad
    (tensor([0.0000, 0.5000, 3.5000]), tensor([1., 1., 0.]))
    """
    op = "fake_quantize_per_tensor_affine"
    _checked(op, input, None)
    _bounds(op, quant_min, quant_max)
    step = scale if isinstance(scale, Tensor) else F.tensor(float(scale), dtype=dt.float32, device=input.device)
    zero = zero_point if isinstance(zero_point, Tensor) else F.tensor(int(zero_point), device=input.device)
    if step.numel() != 1 or zero.numel() != 1:
        raise RuntimeError(
            f"{op}: scale and zero_point are one number each; fake_quantize_per_channel_affine has more."
        )
    out: Tensor = _Fake.apply(input, step.detach().reshape(()), zero.detach().reshape(()), None, quant_min, quant_max)
    return out


def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """The same with a scale and a zero point for each place along a dimension.

    >>> x = votive.tensor([[0.24, 0.26], [2.4, 2.6]])
    >>> votive.fake_quantize_per_channel_affine(x, votive.tensor([0.5, 5.0]), votive.tensor([0, 0]).int(), 0, -8, 7)
    tensor([[0.0000, 0.5000],
            [0.0000, 5.0000]])
    """
    op = "fake_quantize_per_channel_affine"
    _checked(op, input, axis)
    _bounds(op, quant_min, quant_max)
    _channels(op, input, scale, zero_point, axis)
    if zero_point.dtype not in (dt.int32, dt.float32, dt.float16):
        raise RuntimeError(f"Zero-point must be Int32, Float or Half, found {zero_point.dtype}")
    out: Tensor = _Fake.apply(input, scale.detach(), zero_point.detach(), axis, quant_min, quant_max)
    return out


def _channels(op: str, x: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> None:
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if value.ndim != 1 or value.shape[0] != x.shape[axis]:
            raise RuntimeError(f"{op}: {name} should be 1-D, of {x.shape[axis]}, got shape {tuple(value.shape)}.")


def fake_quantize_learnable_per_tensor_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """Fake quantization whose scale and zero point are trained; their gradients are multiplied by `grad_factor`."""
    op = "_fake_quantize_learnable_per_tensor_affine"
    _checked(op, input, None)
    _bounds(op, quant_min, quant_max)
    out: Tensor = _Learned.apply(input, scale, zero_point, None, quant_min, quant_max, grad_factor)
    return out


def fake_quantize_learnable_per_channel_affine(
    input: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:
    """The same with a scale and a zero point for each place along a dimension."""
    op = "_fake_quantize_learnable_per_channel_affine"
    _checked(op, input, axis)
    _bounds(op, quant_min, quant_max)
    _channels(op, input, scale, zero_point, axis)
    out: Tensor = _Learned.apply(input, scale, zero_point, axis, quant_min, quant_max, grad_factor)
    return out


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Move the running bounds towards those of the input, take scale and zero from them, and fake-quantize.

    All of it is switched by the tensors `observer_on` and `fake_quant_on`; bounds, scale and zero are written in place.

    >>> low, high, on = votive.tensor(float("inf")), votive.tensor(float("-inf")), votive.tensor([1])
    >>> scale, zero = votive.ones(1), votive.zeros(1, dtype=votive.int32)
    >>> x = votive.tensor([0.0, 1.2, 7.5])
    >>> votive.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero, 0.01, 0, 15, -1), scale
    (tensor([0.0000, 1.0000, 7.5000]), tensor([0.5000]))
    """
    axis = ch_axis if per_row_fake_quant else None
    if bool(observer_on.reshape(-1)[0]):
        with no_grad():
            _observe(input.detach(), running_min, running_max, averaging_const, axis)
            s, z = nudged_steps(running_min, running_max, quant_min, quant_max, symmetric_quant)
            for kept, value in ((scale, s.reshape(-1)), (zero_point, z.reshape(-1))):
                if kept.shape != value.shape:
                    kept.resize_(value.shape)
                kept.copy_(value)
    if not bool(fake_quant_on.reshape(-1)[0]):
        return input
    if axis is not None:
        zero = zero_point if zero_point.dtype is not dt.int64 else zero_point.to(dt.int32)
        return fake_quantize_per_channel_affine(input, scale, zero, axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _observe(x: Tensor, low: Tensor, high: Tensor, step: float, axis: int | None) -> None:
    if not x.numel():
        return
    least, most = channel_bounds(x, axis)
    first = low.numel() == 0 or bool((low == float("inf")).any())
    for kept, value in ((low, least), (high, most)):
        if kept.shape != value.shape:
            kept.resize_(value.shape)
        kept.copy_(value if first else kept + step * (value - kept))
