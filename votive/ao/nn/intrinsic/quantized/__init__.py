"""Layers between codes of 8 bits with ReLU in the same product."""

from __future__ import annotations

from typing import Any

from ..... import nn
from ....nn import quantized as nnq
from ....nn.quantized.functions import _BatchNorm
from .. import fused as nni


class LinearReLU(nnq.Linear):
    """A linear layer and ReLU between codes."""

    _FLOAT_MODULE = (nni.LinearReLU,)
    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"


class ConvReLU1d(nnq.Conv1d):
    """A convolution and ReLU between codes."""

    _FLOAT_MODULE = (nni.ConvReLU1d,)
    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedConvReLU1d"


class ConvReLU2d(nnq.Conv2d):
    """A convolution and ReLU between codes."""

    _FLOAT_MODULE = (nni.ConvReLU2d,)
    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedConvReLU2d"


class ConvReLU3d(nnq.Conv3d):
    """A convolution and ReLU between codes."""

    _FLOAT_MODULE = (nni.ConvReLU3d,)
    _RELU = True

    def _get_name(self) -> str:
        return "QuantizedConvReLU3d"


class BNReLU2d(_BatchNorm, nn.BatchNorm2d):
    """Batch norm and ReLU between codes."""

    _RELU = True


class BNReLU3d(_BatchNorm, nn.BatchNorm3d):
    """Batch norm and ReLU between codes."""

    _RELU = True


class DynamicLinearReLU(nnq.dynamic.Linear):
    """A linear layer and ReLU from numbers to numbers."""

    _FLOAT_MODULE = (nni.LinearReLU,)
    _RELU = True

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"


def __getattr__(name: str) -> Any:
    if name == "dynamic":
        from importlib import import_module

        return import_module(f"{__name__}.dynamic")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]
