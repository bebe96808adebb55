"""Observers: modules that let numbers pass and remember their bounds, from which scales and zero points follow."""

from __future__ import annotations

import warnings
from typing import Any

from ... import nn
from ...core import affine
from ...core import dtype as dt
from ...core.affine import qscheme as Scheme
from ...core.affine import quantized_dtype
from ...ops.registry import F
from ...quant.range import EPS, affine_steps, channel_bounds, float_steps
from ...tensor import Tensor
from .constructors import Constructible

PER_TENSOR = (affine.per_tensor_affine, affine.per_tensor_symmetric)
SYMMETRIC = (affine.per_tensor_symmetric, affine.per_channel_symmetric)
PER_CHANNEL = (affine.per_channel_affine, affine.per_channel_symmetric, affine.per_channel_affine_float_qparams)
UNSIGNED = (affine.quint8, dt.uint8)
_ALLOWED = (*affine.TYPES.values(), dt.int8, dt.uint8, dt.int16, dt.int32, dt.uint16)


def code_range(dtype: dt.dtype, reduce_range: bool = False) -> tuple[int, int]:
    """The least and greatest code of a type; one bit less where the range is reduced."""
    if isinstance(dtype, quantized_dtype):
        low, high = dtype.low, dtype.high
    else:
        info = dt.iinfo(dtype)
        low, high = int(info.min), int(info.max)
    return (-(-low // 2), high // 2) if reduce_range and dtype.itemsize == 1 else (low, high)


class ObserverBase(Constructible, nn.Module):
    """What every observer is: a module with `calculate_qparams`."""

    def __init__(self, dtype: dt.dtype | None, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: an observer has to say what it does with its input.")

    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scale and zero point that follow from what was seen."""
        raise NotImplementedError(f"{type(self).__name__}: an observer has to say which scale follows.")


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of bounds between which steps are equal."""

    _version = 3
    eps: Tensor
    dtype: dt.dtype

    def __init__(
        self,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        if qscheme not in affine.SCHEMES.values():
            raise AssertionError(f"qscheme is one of {', '.join(affine.SCHEMES)}, got {qscheme!r}.")
        if dtype not in _ALLOWED:
            raise AssertionError(f"observers are for {', '.join(str(d) for d in _ALLOWED)}, got {dtype!r}.")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        self.quant_min, self.quant_max = code_range(dtype, reduce_range)
        if quant_min is not None and quant_max is not None:
            self._check_range(quant_min, quant_max)
            part = 2 if reduce_range else 1
            self.quant_min, self.quant_max = quant_min // part, quant_max // part
        self.factory = dict(factory_kwargs or {})
        self.register_buffer("eps", F.tensor([eps], **self.factory))

    def _check_range(self, low: int, high: int) -> None:
        if not low <= 0 <= high:
            raise AssertionError(f"the range of codes must hold 0, got {low} to {high}.")
        if low >= high:
            raise AssertionError(f"quant_min must be less than quant_max, got {low} and {high}.")
        if not isinstance(self.dtype, quantized_dtype) or self.dtype.itemsize > 1:
            return
        if high - low + 1 > 256:
            raise AssertionError(f"a range of {high - low + 1} codes does not fit in {self.dtype!r}.")

    def _qparams(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Scales and zeros for bounds; 1 and 0 where nothing was seen."""
        if not _seen(low, high):
            return F.tensor([1.0], device=low.device), F.tensor([0], device=low.device)
        if self.qscheme is affine.per_channel_affine_float_qparams:
            scale, zero = float_steps(low, high, self.quant_min, self.quant_max, self.eps)
        else:
            middle = 0
            if self.dtype in UNSIGNED:
                middle = (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
            elif self.dtype is dt.uint16:
                middle = 1 << 15
            symmetric = self.qscheme in SYMMETRIC
            eps = self.eps if low.ndim else self.eps[0]
            bounds = (self.quant_min, self.quant_max)
            scale, zero = affine_steps(low, high, *bounds, symmetric, eps=eps, middle=middle)
        return scale.reshape(-1), zero.reshape(-1)


def _seen(low: Tensor, high: Tensor) -> bool:
    if low.numel() == 0 or high.numel() == 0:
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=4)
        return False
    if low.numel() == 1 and float(low) == float("inf") and float(high) == float("-inf"):
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=4)
        return False
    if bool((low > high).any()):
        raise AssertionError(f"an observer has seen a least number {low} above the greatest {high}.")
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """Remembers the least and the greatest number of all that it has seen.

    >>> seen = votive.ao.quantization.MinMaxObserver()
    >>> _ = seen(votive.tensor([-1.0, 3.0]))
    >>> seen.calculate_qparams()
    (tensor([0.0157]), tensor([64], dtype=votive.int32))
    """

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        if qscheme not in PER_TENSOR:
            raise NotImplementedError(f"{type(self).__name__} has one scale; {qscheme!r} has some per channel.")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.register_buffer("min_val", F.tensor(float("inf"), **self.factory))
        self.register_buffer("max_val", F.tensor(float("-inf"), **self.factory))
        if reduce_range and qscheme is affine.per_tensor_symmetric and dtype is affine.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        low, high = channel_bounds(x_orig.detach().to(self.min_val.dtype), None)
        self._meet(low, high)
        return x_orig

    def _meet(self, low: Tensor, high: Tensor) -> None:
        self.min_val.copy_(low.minimum(self.min_val))
        self.max_val.copy_(high.maximum(self.max_val))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self._qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.copy_(F.tensor(float("inf")))
        self.max_val.copy_(F.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Bounds that follow those of each input by a part of the way, `averaging_constant`."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        factory_kwargs: dict[str, Any] | None = None,
    ) -> None:
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                f"MovingAverageMinMaxObserver is dynamic with averaging_constant=1, got {averaging_constant}."
            )
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.averaging_constant = averaging_constant

    def _meet(self, low: Tensor, high: Tensor) -> None:
        if float(self.min_val) == float("inf") and float(self.max_val) == float("-inf"):
            self.min_val.copy_(low)
            self.max_val.copy_(high)
            return
        self.min_val.copy_(self.min_val + self.averaging_constant * (low - self.min_val))
        self.max_val.copy_(self.max_val + self.averaging_constant * (high - self.max_val))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number for each place along a dimension."""

    min_val: Tensor
    max_val: Tensor

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
    ) -> None:
        if qscheme not in PER_CHANNEL:
            raise NotImplementedError(f"{type(self).__name__} has scales per channel; {qscheme!r} has one.")
        if is_dynamic:
            raise NotImplementedError(f"{type(self).__name__} doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", F.tensor([], **self.factory))
        self.register_buffer("max_val", F.tensor([], **self.factory))
        if reduce_range and qscheme is affine.per_channel_symmetric and dtype is affine.quint8:
            raise NotImplementedError("Cannot reduce range for symmetric quantization for quint8")

    def forward(self, x_orig: Tensor) -> Tensor:
        if x_orig.numel() == 0:
            return x_orig
        low, high = channel_bounds(x_orig.detach().to(self.min_val.dtype), self.ch_axis)
        if self.min_val.numel() and self.max_val.numel():
            low, high = self._met(low, high)
        for kept, value in ((self.min_val, low), (self.max_val, high)):
            kept.resize_(value.shape)
            kept.copy_(value)
        return x_orig

    def _met(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        return low.minimum(self.min_val), high.maximum(self.max_val)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self._qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in ("min_val", "max_val"):
            value = state_dict.get(prefix + name)
            if isinstance(value, Tensor):
                getattr(self, name).resize_(value.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_min_max_vals(self) -> None:
        """Forget what was seen."""
        self.min_val.resize_((0,))
        self.max_val.resize_((0,))


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """The same with bounds that follow by a part of the way."""

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: dt.dtype = affine.quint8,
        qscheme: Scheme = affine.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        factory_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(ch_axis, dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic)
        self.averaging_constant = averaging_constant

    def _met(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        step = self.averaging_constant
        return self.min_val + step * (low - self.min_val), self.max_val + step * (high - self.max_val)
