"""Activations, norms and dropout between codes: computed with the numbers that codes stand for, and rounded again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import nn
from ....nn import functional as NF
from ....ops.registry import F
from ....surface.quantized_functions import quantize_per_tensor, quantized
from ....tensor import Tensor
from .observed import result_steps

if TYPE_CHECKING:
    from ....nn.module import Module


class ReLU6(nn.ReLU):
    """`min(max(x, 0), 6)` on codes."""

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = NF.relu6(input, self.inplace)
        return out

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """What `nn.ReLU6` becomes."""
        return ReLU6(mod.inplace)


class Dropout(nn.Dropout):
    """Does nothing: codes are not trained."""

    def forward(self, input: Tensor) -> Tensor:
        return input

    def _get_name(self) -> str:
        return "QuantizedDropout"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Dropout:
        """What `nn.Dropout` becomes."""
        return cls(mod.p, mod.inplace)


class _Rounded(nn.Module):
    """A module of numbers whose results are rounded to a given scale."""

    def __init__(self, *args: Any, scale: float, zero_point: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("scale", F.tensor(float(scale)))
        self.register_buffer("zero_point", F.tensor(int(zero_point)))

    def forward(self, input: Tensor) -> Tensor:
        codes = quantized(self._get_name(), input)
        numbers = super().forward(codes.dequantize())
        out: Tensor = quantize_per_tensor(numbers.detach(), float(self.scale), int(self.zero_point), codes._kind_of)
        return out

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """What an observed module becomes: its own values, and the scale that was seen."""
        inner = mod
        if isinstance(mod, nn.Sequential):
            inner = mod[0]
        scale, zero = result_steps(mod)
        made: Any = cls.__new__(cls)
        made.__dict__.update(inner.__dict__)
        for table in ("_parameters", "_buffers", "_modules"):
            made.__dict__[table] = dict(inner.__dict__[table])
        for table in [k for k in inner.__dict__ if k.endswith("_hooks")]:
            made.__dict__[table] = type(inner.__dict__[table])()
        made._modules.pop("activation_post_process", None)
        made.__dict__.pop("qconfig", None)
        made.register_buffer("scale", F.tensor(scale))
        made.register_buffer("zero_point", F.tensor(zero))
        return made


class Hardswish(_Rounded, nn.Hardswish):
    """`x * relu6(x + 3) / 6` between codes."""

    def __init__(self, scale: float, zero_point: int) -> None:
        super().__init__(scale=scale, zero_point=zero_point)


class ELU(_Rounded, nn.ELU):
    """`max(0, x) + min(0, alpha (exp(x) - 1))` between codes."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha, scale=scale, zero_point=zero_point)


class LeakyReLU(_Rounded, nn.LeakyReLU):
    """`max(0, x) + slope * min(0, x)` between codes."""

    def __init__(self, scale: float, zero_point: int, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__(negative_slope, inplace, scale=scale, zero_point=zero_point)


class Sigmoid(_Rounded, nn.Sigmoid):
    """The sigmoid between codes."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__(scale=output_scale, zero_point=output_zero_point)


class Softmax(_Rounded, nn.Softmax):
    """Softmax between codes."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim, scale=scale, zero_point=zero_point)


class PReLU(_Rounded, nn.PReLU):
    """ReLU with learned slopes between codes."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__(num_parameters, scale=output_scale, zero_point=output_zero_point)


class LayerNorm(_Rounded, nn.LayerNorm):
    """Layer norm between codes."""


class GroupNorm(_Rounded, nn.GroupNorm):
    """Group norm between codes."""


class InstanceNorm1d(_Rounded, nn.InstanceNorm1d):
    """Instance norm between codes."""


class InstanceNorm2d(_Rounded, nn.InstanceNorm2d):
    """Instance norm between codes."""


class InstanceNorm3d(_Rounded, nn.InstanceNorm3d):
    """Instance norm between codes."""


class _BatchNorm(_Rounded):
    """Batch norm between codes, with the statistics that were seen in training."""

    _RELU = False

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, **where: Any) -> None:
        super().__init__(num_features, eps, momentum, scale=1.0, zero_point=0, **where)

    def forward(self, input: Tensor) -> Tensor:
        codes = quantized(self._get_name(), input)
        self_: Any = self
        norm = (self_.running_mean, self_.running_var, self_.weight, self_.bias, False, 0.0, self_.eps)
        numbers = NF.batch_norm(codes.dequantize(), *norm).detach()
        if self._RELU:
            numbers = NF.relu(numbers)
        out: Tensor = quantize_per_tensor(numbers, float(self.scale), int(self.zero_point), codes._kind_of)
        return out


class BatchNorm2d(_BatchNorm, nn.BatchNorm2d):
    """Batch norm of pictures between codes."""


class BatchNorm3d(_BatchNorm, nn.BatchNorm3d):
    """Batch norm of volumes between codes."""
