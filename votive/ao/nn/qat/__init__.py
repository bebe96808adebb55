"""Layers that train with the rounding error of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .... import nn
from ....nn import functional as NF
from ....nn.layers.linear import NonDynamicallyQuantizableLinear
from ....tensor import Tensor

if TYPE_CHECKING:
    from ....core.device import DeviceLike
    from ....core.dtype import dtype as Dtype
    from ....nn.module import Module


class _Fake:
    """What such layers share: the weight passes a fake quantization on its way to the product."""

    _FLOAT: Any
    weight: Any
    qconfig: Any
    weight_fake_quant: Any

    def _observe(self, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight()

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that a float one with a configuration becomes; it shares its parameters."""
        if type(mod) is not cls._FLOAT:
            raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT.__name__}, got {type(mod)}")
        if not getattr(mod, "qconfig", None):
            raise AssertionError("Input float module must have a valid qconfig")
        return taking(cls, mod, mod.qconfig)

    def to_float(self) -> Any:
        """The float layer with the same parameters."""
        made: Any = self._FLOAT.__new__(self._FLOAT)
        copy_values(self, made)
        made._modules.pop("weight_fake_quant", None)
        made.__dict__.pop("qconfig", None)
        return made


def copy_values(source: Any, target: Any) -> None:
    """Give a new module the attributes, parameters and buffers of another; hooks stay behind."""
    for name, value in source.__dict__.items():
        if name in ("_parameters", "_buffers", "_modules"):
            target.__dict__[name] = type(value)(value)
        elif name.endswith("_hooks"):
            target.__dict__[name] = type(value)()
        else:
            target.__dict__[name] = value


def taking(cls: Any, mod: Module, qconfig: Any) -> Any:
    """An object of a class with the values of a module, whose weight is observed."""
    made = cls.__new__(cls)
    copy_values(mod, made)
    made._observe(qconfig)
    return made


class Linear(_Fake, nn.Linear):
    """A linear layer that trains with a rounded weight."""

    _FLOAT: Any = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: DeviceLike | None = None,
        dtype: Dtype | None = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self._observe(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = NF.linear(input, self.weight_fake_quant(self.weight), self.bias)
        return out

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        if type(mod) is NonDynamicallyQuantizableLinear:
            return taking(cls, mod, mod.qconfig)
        return super().from_float(mod, use_precomputed_fake_quant)


def convolved(mod: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """What a convolution does, with another weight."""
    n = weight.ndim - 2
    x, padding = input, mod.padding
    if mod.padding_mode != "zeros":
        around = mod._reversed_padding_repeated_twice
        x, padding = NF.pad(input, around, mode=mod.padding_mode), (0,) * n
    out: Tensor = getattr(NF, f"conv{n}d")(x, weight, bias, mod.stride, padding, mod.dilation, mod.groups)
    return out


class _ConvFake(_Fake):
    """What convolutions share."""

    padding: Any
    padding_mode: Any
    stride: Any
    dilation: Any
    groups: Any
    bias: Any

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observe(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return convolved(self, input, self.weight_fake_quant(self.weight), self.bias)


class Conv1d(_ConvFake, nn.Conv1d):
    """A convolution that trains with a rounded weight."""

    _FLOAT = nn.Conv1d


class Conv2d(_ConvFake, nn.Conv2d):
    """A convolution that trains with a rounded weight."""

    _FLOAT = nn.Conv2d


class Conv3d(_ConvFake, nn.Conv3d):
    """A convolution that trains with a rounded weight."""

    _FLOAT = nn.Conv3d


class Embedding(_Fake, nn.Embedding):
    """A table that trains with rounded rows."""

    _FLOAT = nn.Embedding

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observe(qconfig)

    def forward(self, input: Tensor) -> Tensor:
        how = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        out: Tensor = NF.embedding(input, self.weight_fake_quant(self.weight), *how)
        return out


class EmbeddingBag(_Fake, nn.EmbeddingBag):
    """A table of bags that trains with rounded rows."""

    _FLOAT = nn.EmbeddingBag

    def __init__(self, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._observe(qconfig)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        how: dict[str, Any] = {
            "max_norm": self.max_norm,
            "norm_type": self.norm_type,
            "scale_grad_by_freq": self.scale_grad_by_freq,
            "mode": self.mode,
            "sparse": self.sparse,
            "per_sample_weights": per_sample_weights,
            "include_last_offset": self.include_last_offset,
            "padding_idx": self.padding_idx,
        }
        out: Tensor = NF.embedding_bag(input, self.weight_fake_quant(self.weight), offsets, **how)
        return out


__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
