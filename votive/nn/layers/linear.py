"""Linear maps: Identity, Linear, Bilinear."""

from __future__ import annotations

import math
from typing import Any

import votive

from ...core import dtype as dt
from ...core.device import DeviceLike
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..factory import FactoryKwargs
from ..lazy import LazyModuleMixin
from ..module import Module
from ..parameter import Parameter, UninitializedParameter


class Identity(Module):
    """Returns its input; takes any arguments.

    >>> votive.nn.Identity(54, unused=True)(votive.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """`y = x A^T + b`.

    >>> votive.nn.Linear(20, 30)(votive.ones(128, 20)).shape
    votive.Size([128, 30])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        made = FactoryKwargs(device=device, dtype=dtype)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(votive.empty((out_features, in_features), **made))
        self.register_parameter("bias", Parameter(votive.empty(out_features, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # a=sqrt(5) gives uniform(-1/sqrt(in), 1/sqrt(in)), torch's choice.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that torch's attention gives its output projection.

    >>> from votive.nn.layers.linear import NonDynamicallyQuantizableLinear
    >>> NonDynamicallyQuantizableLinear(2, 3)
    NonDynamicallyQuantizableLinear(in_features=2, out_features=3, bias=True)
    """


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that learns `in_features` from its first input.

    >>> votive.nn.LazyLinear(3)(votive.ones(2, 5)).shape
    votive.Size([2, 3])
    """

    cls_to_become = Linear
    weight: UninitializedParameter
    bias: UninitializedParameter | None

    def __init__(
        self, out_features: int, bias: bool = True, device: DeviceLike = None, dtype: dt.dtype | None = None
    ) -> None:
        made = FactoryKwargs(device=device, dtype=dtype)
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(**made)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(**made)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            with votive.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()


class Bilinear(Module):
    """`y = x1^T A x2 + b`.

    >>> votive.nn.Bilinear(4, 5, 2)(votive.ones(3, 4), votive.ones(3, 5)).shape
    votive.Size([3, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        made = FactoryKwargs(device=device, dtype=dtype)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(votive.empty((out_features, in1_features, in2_features), **made))
        self.register_parameter("bias", Parameter(votive.empty(out_features, **made)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
