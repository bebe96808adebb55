"""Dropout: zero elements, channels or features at random while training."""

from __future__ import annotations

from ...tensor import Tensor
from .. import functional as F
from ..module import Module


class _Dropout(Module):
    """Base of the family: a probability and a flag."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Zero each element with probability `p` and scale the rest.

    >>> votive.nn.Dropout(0.5).eval()(votive.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Zero whole channels of (N, C, L).

    >>> votive.nn.Dropout1d(1.0)(votive.ones(1, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Zero whole channels of (N, C, H, W).

    >>> votive.nn.Dropout2d(1.0)(votive.ones(1, 2, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Zero whole channels of (N, C, D, H, W).

    >>> votive.nn.Dropout3d(1.0)(votive.ones(1, 2, 2, 2, 2)).sum()
    tensor(0.)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of selu activations.

    >>> votive.nn.AlphaDropout().eval()(votive.ones(2))
    tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """Alpha dropout of whole channels.

    >>> votive.nn.FeatureAlphaDropout().eval()(votive.ones(2, 3))
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
