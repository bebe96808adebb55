"""Softmax and its kin along a dimension, as modules."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .option_repr import OptionRepr


class _AlongDim(OptionRepr):
    """A function along one dimension."""

    _options = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmin(_AlongDim):
    """Softmax of the negated input.

    >>> votive.nn.Softmin(0)(votive.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Exponentials normalised to sum 1.

    >>> votive.nn.Softmax(0)(votive.zeros(2))
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of each pixel.

    >>> votive.nn.Softmax2d()(votive.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D (got {input.dim()}D)")
        return F.softmax(input, -3)


class LogSoftmax(_AlongDim):
    """Logarithm of softmax.

    >>> votive.nn.LogSoftmax(0)(votive.zeros(2))
    tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)
