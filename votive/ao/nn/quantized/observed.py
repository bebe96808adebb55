"""What quantized modules read off an observed module: weights as codes, and the scale of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import nn
from ....core import affine
from ....core import dtype as dt
from ....surface.quantized_functions import quantize_per_channel, quantize_per_tensor
from ....surface.quantized_tensor import QuantizedTensor
from ....tensor import Tensor

if TYPE_CHECKING:
    from ....nn.module import Module


def quantized_weight(weight: Tensor, observer: Module) -> QuantizedTensor:
    """A weight as codes, by what its observer has seen."""
    scale, zero = observer.calculate_qparams()
    kind = observer.dtype
    numbers = weight.detach().to(dt.float32)
    if observer.qscheme in (affine.per_tensor_affine, affine.per_tensor_symmetric):
        out: QuantizedTensor = quantize_per_tensor(numbers, float(scale), int(zero), kind)
        return out
    if observer.qscheme is affine.per_channel_affine_float_qparams:
        return quantize_per_channel(numbers, scale, zero.to(dt.float32), observer.ch_axis, kind)
    return quantize_per_channel(numbers, scale, zero.to(dt.int64), observer.ch_axis, kind)


def weight_of(mod: nn.Module, *, observed: bool = False) -> QuantizedTensor:
    """The weight of a module as codes of `qint8`, by its fake quantization or its configuration's observer.

    With `observed`, fake quantization keeps the scale that it has.
    """
    observer: Any = getattr(mod, "weight_fake_quant", None)
    fresh = observer is None
    if fresh:
        qconfig: Any = mod.qconfig
        observer = qconfig.weight()
    if fresh or not observed:
        observer(mod.weight.detach())
    if observer.dtype is not affine.qint8:
        raise AssertionError(f"Weight observer must have dtype qint8, got {observer.dtype}")
    weight = mod.weight
    assert isinstance(weight, Tensor)
    return quantized_weight(weight, observer)


def result_steps(mod: nn.Module) -> tuple[float, int]:
    """The scale and zero point of a module's results, as its observer has seen them."""
    observer: Any = getattr(mod, "activation_post_process", None)
    if observer is None:
        raise AssertionError(f"{type(mod).__name__} was not observed; run `prepare`, then some inputs.")
    scale, zero = observer.calculate_qparams()
    return float(scale), int(zero)


def check_source(mod: nn.Module, target: type, sources: tuple[type, ...]) -> None:
    """A module that can become another."""
    if type(mod) not in sources:
        names = ", ".join(s.__name__ for s in sources)
        raise AssertionError(f"{target.__name__}.from_float only works for {names}, but got: {type(mod)}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
