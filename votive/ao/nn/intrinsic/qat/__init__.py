"""Fused layers that train with rounding: batch norm is folded into the weight before that is rounded."""

from __future__ import annotations

from typing import Any

from ..... import nn
from .....nn import functional as NF
from .....nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights
from .....ops.registry import F
from .....tensor import Tensor
from ....nn import qat
from ....nn.qat import convolved, copy_values
from .. import fused as nni


class LinearReLU(qat.Linear):
    """A linear layer and ReLU that train with a rounded weight."""

    _FLOAT: Any = nni.LinearReLU

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = NF.relu(super().forward(input))
        return out

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        return _first(cls, mod)

    def to_float(self) -> Any:
        return nni.LinearReLU(_plain(self, nn.Linear), nn.ReLU())


def _first(cls: Any, mod: Any) -> Any:
    if not isinstance(mod, cls._FLOAT):
        raise AssertionError(f"qat.{cls.__name__}.from_float only works for {cls._FLOAT.__name__}, got {type(mod)}")
    return qat.taking(cls, mod[0], mod.qconfig)


def _plain(mod: Any, kind: Any) -> Any:
    made = kind.__new__(kind)
    copy_values(mod, made)
    for name in ("weight_fake_quant", "bn", "activation_post_process"):
        made._modules.pop(name, None)
    made.__dict__.pop("qconfig", None)
    return made


class _ConvReLU(qat._ConvFake):
    """What convolutions with ReLU share."""

    _PLAIN: Any

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = NF.relu(super().forward(input))
        return out

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        return _first(cls, mod)

    def to_float(self) -> Any:
        return self._FLOAT(_plain(self, self._PLAIN), nn.ReLU())


class ConvReLU1d(_ConvReLU, nn.Conv1d):
    """A convolution and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvReLU1d, nn.Conv1d


class ConvReLU2d(_ConvReLU, nn.Conv2d):
    """A convolution and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvReLU2d, nn.Conv2d


class ConvReLU3d(_ConvReLU, nn.Conv3d):
    """A convolution and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvReLU3d, nn.Conv3d


class _Bn(qat._Fake):
    """Layers with batch norm: `y = bn(product(x, round(w * s)) / s)` with s = gamma / running deviation.

    The weight is rounded with the scale that it will have when both are folded, while the statistics of the batch
    still see the product with the weight itself (arXiv:1806.08342, section 3.2).
    """

    _RELU = False
    _PLAIN: Any
    _AXIS = 1
    bn: Any
    bias: Any

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        deviation = F.sqrt(self.bn.running_var + self.bn.eps)
        scale = self.bn.weight / deviation
        rows = scale.reshape(-1, *[1] * (self.weight.ndim - 1))
        y = self._product(input, self.weight_fake_quant(self.weight * rows))
        wide = [1] * y.ndim
        wide[self._AXIS if y.ndim > 1 else 0] = -1
        y = y / scale.reshape(wide)
        if self.bias is not None:
            y = y + self.bias.reshape(wide)
        y = self.bn(y)
        return NF.relu(y) if self._RELU else y

    def update_bn_stats(self) -> Any:
        """Let batch norm follow the batches."""
        self.bn.train()
        return self

    def freeze_bn_stats(self) -> Any:
        """Let batch norm use the statistics that it has."""
        self.bn.eval()
        return self

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that a fused one with a configuration becomes; it shares parameters and statistics."""
        made = _first(cls, mod)
        made.bn = mod[1]
        return made

    def folded(self) -> Any:
        """The plain layer with batch norm in its weight, observed as this one is."""
        made = _plain(self, self._PLAIN)
        fuse = fuse_linear_bn_weights if self._PLAIN is nn.Linear else fuse_conv_bn_weights
        norm = self.bn
        parts = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
        made.weight, made.bias = fuse(self.weight, self.bias, *parts)
        made.qconfig = self.qconfig
        made.weight_fake_quant = self.weight_fake_quant
        return made

    def to_float(self) -> Any:
        made = self.folded()
        made._modules.pop("weight_fake_quant")
        del made.qconfig
        if not self._RELU:
            return made
        return {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}[self._PLAIN](
            made, nn.ReLU()
        )


class _ConvBn(_Bn):
    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        return convolved(self, input, weight, None)


class ConvBn1d(_ConvBn, nn.Conv1d):
    """A convolution and batch norm that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvBn1d, nn.Conv1d


class ConvBn2d(_ConvBn, nn.Conv2d):
    """A convolution and batch norm that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvBn2d, nn.Conv2d


class ConvBn3d(_ConvBn, nn.Conv3d):
    """A convolution and batch norm that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.ConvBn3d, nn.Conv3d


class ConvBnReLU1d(_ConvBn, nn.Conv1d):
    """A convolution, batch norm and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN, _RELU = nni.ConvBnReLU1d, nn.Conv1d, True


class ConvBnReLU2d(_ConvBn, nn.Conv2d):
    """A convolution, batch norm and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN, _RELU = nni.ConvBnReLU2d, nn.Conv2d, True


class ConvBnReLU3d(_ConvBn, nn.Conv3d):
    """A convolution, batch norm and ReLU that train with a rounded weight."""

    _FLOAT, _PLAIN, _RELU = nni.ConvBnReLU3d, nn.Conv3d, True


class LinearBn1d(_Bn, nn.Linear):
    """A linear layer and batch norm that train with a rounded weight."""

    _FLOAT, _PLAIN = nni.LinearBn1d, nn.Linear
    _AXIS = -1

    def _product(self, input: Tensor, weight: Tensor) -> Tensor:
        out: Tensor = NF.linear(input, weight)
        return out


def update_bn_stats(mod: nn.Module) -> None:
    """For `model.apply`: let batch norm of fused layers follow the batches."""
    if isinstance(mod, _Bn):
        mod.update_bn_stats()


def freeze_bn_stats(mod: nn.Module) -> None:
    """For `model.apply`: let batch norm of fused layers use the statistics that it has."""
    if isinstance(mod, _Bn):
        mod.freeze_bn_stats()


__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
    "freeze_bn_stats",
    "update_bn_stats",
]
