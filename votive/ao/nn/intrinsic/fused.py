"""Modules in a row that are quantized as one: what fusing puts in their place. Knows no quantization."""

from __future__ import annotations

from typing import Any, ClassVar

from .... import nn


class _FusedModule(nn.Sequential):
    """Modules of given kinds, one after the other."""

    _KINDS: ClassVar[tuple[type, ...]] = ()

    def __init__(self, *parts: Any) -> None:
        for kind, part in zip(self._KINDS, parts, strict=True):
            if not isinstance(part, kind):
                wanted = ", ".join(k.__name__ for k in self._KINDS)
                raise AssertionError(
                    f"{type(self).__name__} takes {wanted}, got {', '.join(type(p).__name__ for p in parts)}"
                )
        super().__init__(*parts)


class ConvReLU1d(_FusedModule):
    """A convolution and ReLU."""

    _KINDS = (nn.Conv1d, nn.ReLU)


class ConvReLU2d(_FusedModule):
    """A convolution and ReLU."""

    _KINDS = (nn.Conv2d, nn.ReLU)


class ConvReLU3d(_FusedModule):
    """A convolution and ReLU."""

    _KINDS = (nn.Conv3d, nn.ReLU)


class LinearReLU(_FusedModule):
    """A linear layer and ReLU."""

    _KINDS = (nn.Linear, nn.ReLU)


class ConvBn1d(_FusedModule):
    """A convolution and batch norm, to be trained."""

    _KINDS = (nn.Conv1d, nn.BatchNorm1d)


class ConvBn2d(_FusedModule):
    """A convolution and batch norm, to be trained."""

    _KINDS = (nn.Conv2d, nn.BatchNorm2d)


class ConvBn3d(_FusedModule):
    """A convolution and batch norm, to be trained."""

    _KINDS = (nn.Conv3d, nn.BatchNorm3d)


class ConvBnReLU1d(_FusedModule):
    """A convolution, batch norm and ReLU, to be trained."""

    _KINDS = (nn.Conv1d, nn.BatchNorm1d, nn.ReLU)


class ConvBnReLU2d(_FusedModule):
    """A convolution, batch norm and ReLU, to be trained."""

    _KINDS = (nn.Conv2d, nn.BatchNorm2d, nn.ReLU)


class ConvBnReLU3d(_FusedModule):
    """A convolution, batch norm and ReLU, to be trained."""

    _KINDS = (nn.Conv3d, nn.BatchNorm3d, nn.ReLU)


class BNReLU2d(_FusedModule):
    """Batch norm and ReLU."""

    _KINDS = (nn.BatchNorm2d, nn.ReLU)


class BNReLU3d(_FusedModule):
    """Batch norm and ReLU."""

    _KINDS = (nn.BatchNorm3d, nn.ReLU)


class LinearBn1d(_FusedModule):
    """A linear layer and batch norm, to be trained."""

    _KINDS = (nn.Linear, nn.BatchNorm1d)
