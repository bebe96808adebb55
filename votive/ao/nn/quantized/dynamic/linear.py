"""The linear layer from numbers to numbers with a weight of 8 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..... import nn
from .....core import affine
from .....nn.layers.linear import NonDynamicallyQuantizableLinear
from .....tensor import Tensor
from ....nn.intrinsic import fused as nni
from ..linear import Linear as StaticLinear
from ..observed import check_source, weight_of

if TYPE_CHECKING:
    from .....nn.module import Module


class Linear(StaticLinear):
    """`y = x W^T + b`: x is rounded to 7 bits by its least and greatest number (8 with the engine "qnnpack"), W has 8.

    >>> votive.ao.nn.quantized.dynamic.Linear(4, 2)(votive.ones(3, 4)).shape
    votive.Size([3, 2])
    """

    _FLOAT_MODULE: tuple[type, ...] = (nn.Linear, NonDynamicallyQuantizableLinear)
    reduce_range = True

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = affine.qint8) -> None:
        super().__init__(in_features, out_features, bias_, dtype)
        self.version = 4

    def forward(self, x: Tensor) -> Tensor:
        return self._packed_params._packed_params.linear_dynamic(x, self.reduce_range, self._RELU)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer that a float one with a configuration becomes."""
        if not hasattr(mod, "weight_fake_quant"):
            check_source(mod, cls, cls._FLOAT_MODULE)
        if isinstance(mod, nni.LinearReLU):
            mod[0].qconfig = mod.qconfig
            mod = mod[0]
        made = cls(mod.in_features, mod.out_features)
        made.set_weight_bias(weight_of(mod, observed=use_precomputed_fake_quant), mod.bias)
        return made
