"""`torch.nn.modules.batchnorm`: private names that libraries reach for."""

from __future__ import annotations

from .....nn.layers.batchnorm import LazyNormBase as _LazyNormBase
from .....nn.layers.batchnorm import NormBase as _NormBase
from .....nn.layers.batchnorm import _BatchNorm

__all__ = ["_BatchNorm", "_LazyNormBase", "_NormBase"]
