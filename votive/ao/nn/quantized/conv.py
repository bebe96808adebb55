"""Convolutions between codes of 8 bits; transposed ones compute with the numbers that codes stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .... import nn
from ....core import affine
from ....nn import functional as NF
from ....ops.registry import F
from ....surface.quantized_functions import empty_affine_quantized, quantize_per_tensor
from ....surface.quantized_tensor import QuantizedTensor, like
from ....tensor import Tensor
from ...nn.intrinsic import fused as nni
from .linear import QuantizedModule
from .observed import check_source, result_steps, weight_of
from .packed import PackedWeight

if TYPE_CHECKING:
    from ....core.device import DeviceLike
    from ....core.dtype import dtype as Dtype
    from ....nn.module import Module


def sizes(value: Any, n: int) -> tuple[int, ...]:
    """One number for each dimension."""
    return (int(value),) * n if isinstance(value, int) else tuple(int(v) for v in value)


class _Conv(QuantizedModule):
    """What convolutions of one, two and three dimensions share."""

    _N: ClassVar[int]
    _RELU = False
    _FLOAT_MODULE: tuple[type, ...] = ()

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}.")
        if padding_mode not in ("zeros", "reflect"):
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = sizes(kernel_size, self._N), sizes(stride, self._N)
        if isinstance(padding, str):
            raise ValueError(f"padding={padding!r}: quantized convolutions take numbers.")
        self.padding, self.dilation = sizes(padding, self._N), sizes(dilation, self._N)
        self.padding_mode = padding_mode
        self.transposed, self.output_padding = False, (0,) * self._N
        shape = self._shape()
        weight = empty_affine_quantized(shape, dtype=affine.qint8, device=device)
        self.scale, self.zero_point = 1.0, 0
        self.set_weight_bias(weight, F.zeros(out_channels, device=device) if bias else None)

    def _shape(self) -> tuple[int, ...]:
        return (self.out_channels, self.in_channels // self.groups, *self.kernel_size)

    def _get_name(self) -> str:
        return f"QuantizedConv{self._N}d"

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Pack another weight."""
        self._packed_params: Any = PackedWeight(w, b, self.groups)

    def _weight_bias(self) -> tuple[QuantizedTensor, Tensor | None]:
        return self._packed_params.weight, self._packed_params.bias

    def forward(self, input: Tensor) -> Tensor:
        x, padding = input, self.padding
        if self.padding_mode != "zeros" and isinstance(x, QuantizedTensor):
            around = [p for v in reversed(padding) for p in (v, v)]
            x = like(x, NF.pad(x._codes, around, mode=self.padding_mode))
            padding = (0,) * self._N
        steps = (self.scale, self.zero_point)
        out: Tensor = self._packed_params.conv(x, self.stride, padding, self.dilation, *steps, self._RELU)
        return out

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias() is not None else text + ", bias=False"

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        taken = dict(state_dict)
        weight, bias = taken.pop(prefix + "weight", None), taken.pop(prefix + "bias", None)
        if weight is None:
            rest[2].append(prefix + "weight")
        else:
            self.set_weight_bias(weight, bias)
        super()._load_from_state_dict(taken, prefix, *rest)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that an observed or trained one becomes."""
        if not hasattr(mod, "weight_fake_quant"):
            check_source(mod, cls, cls._FLOAT_MODULE)
        scale, zero = result_steps(mod)
        if hasattr(mod, "folded"):
            mod = mod.folded()
        elif isinstance(mod, nni._FusedModule):
            mod[0].qconfig = mod.qconfig
            mod = mod[0]
        if isinstance(mod.padding, str):
            raise ValueError(f"padding={mod.padding!r}: quantized convolutions take numbers.")
        made = cls(
            mod.in_channels,
            mod.out_channels,
            mod.kernel_size,
            mod.stride,
            mod.padding,
            mod.dilation,
            mod.groups,
            mod.bias is not None,
            mod.padding_mode,
        )
        made.set_weight_bias(weight_of(mod, observed=use_precomputed_fake_quant), mod.bias)
        made.scale, made.zero_point = scale, zero
        return made


class Conv1d(_Conv):
    """A convolution over one dimension from codes to codes."""

    _N = 1
    _FLOAT_MODULE: tuple[type, ...] = (nn.Conv1d,)


class Conv2d(_Conv):
    """A convolution over two dimensions from codes to codes.

    >>> layer = votive.ao.nn.quantized.Conv2d(3, 4, 3)
    >>> layer(votive.quantize_per_tensor(votive.ones(1, 3, 8, 8), 0.5, 0, votive.quint8)).shape
    votive.Size([1, 4, 6, 6])
    """

    _N = 2
    _FLOAT_MODULE: tuple[type, ...] = (nn.Conv2d,)


class Conv3d(_Conv):
    """A convolution over three dimensions from codes to codes."""

    _N = 3
    _FLOAT_MODULE: tuple[type, ...] = (nn.Conv3d,)


class _ConvTranspose(_Conv):
    """What transposed convolutions share: the weight is codes, products are of numbers."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for ConvTranspose, got {padding_mode!r}.')
        how = (stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        super().__init__(in_channels, out_channels, kernel_size, *how)
        self.transposed, self.output_padding = True, sizes(output_padding, self._N)

    def _shape(self) -> tuple[int, ...]:
        return (self.in_channels, self.out_channels // self.groups, *self.kernel_size)

    def _get_name(self) -> str:
        return f"QuantizedConvTranspose{self._N}d"

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        if not isinstance(w, QuantizedTensor) or w._axis is not None:
            raise RuntimeError("transposed convolutions take a qint8 weight with one scale.")
        self._packed_params = _Pair(w, None if b is None else b.detach())

    def forward(self, input: Tensor) -> Tensor:
        if not isinstance(input, QuantizedTensor):
            raise RuntimeError(f"conv_transpose{self._N}d: takes a quantized tensor; use quantize_per_tensor.")
        weight, bias = self._weight_bias()
        call = getattr(NF, f"conv_transpose{self._N}d")
        how = (self.stride, self.padding, self.output_padding, self.groups, self.dilation)
        numbers = call(input.dequantize(), weight.dequantize(), bias, *how)
        out: Tensor = quantize_per_tensor(numbers, self.scale, self.zero_point, input._kind_of)
        return out

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        check_source(mod, cls, cls._FLOAT_MODULE)
        made = cls(
            mod.in_channels,
            mod.out_channels,
            mod.kernel_size,
            mod.stride,
            mod.padding,
            mod.output_padding,
            mod.groups,
            mod.bias is not None,
            mod.dilation,
            mod.padding_mode,
        )
        made.set_weight_bias(weight_of(mod, observed=use_precomputed_fake_quant), mod.bias)
        made.scale, made.zero_point = result_steps(mod)
        return made


class _Pair:
    """A weight that is not packed, and its bias."""

    def __init__(self, weight: QuantizedTensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias


class ConvTranspose1d(_ConvTranspose):
    """A transposed convolution over one dimension from codes to codes."""

    _N = 1
    _FLOAT_MODULE: tuple[type, ...] = (nn.ConvTranspose1d,)


class ConvTranspose2d(_ConvTranspose):
    """A transposed convolution over two dimensions from codes to codes."""

    _N = 2
    _FLOAT_MODULE: tuple[type, ...] = (nn.ConvTranspose2d,)


class ConvTranspose3d(_ConvTranspose):
    """A transposed convolution over three dimensions from codes to codes."""

    _N = 3
    _FLOAT_MODULE: tuple[type, ...] = (nn.ConvTranspose3d,)
