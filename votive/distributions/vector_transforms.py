"""Maps of vectors and matrices: softmax, stick breaking, Cholesky factors. Knows tensors and
constraints, no distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import linalg
from ..core import dtype as dt
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .scalar_transforms import inner_sigmoid
from .transform import Transform


def _longer(shape: Sequence[int], change: int) -> Size:
    """`shape` with `change` more in the last dimension."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + change))


class SoftmaxTransform(Transform):
    """From real vectors to the simplex, by exp and division; not bijective.

    >>> votive.distributions.SoftmaxTransform()(votive.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(y)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _longer(shape, 0)

    inverse_shape = forward_shape


def _centre(x: Tensor, rest: int) -> Tensor:
    """log of how many pieces of stick are left, so that x = 0 breaks it into equal ones."""
    return F.log(F.arange(rest, 0, -1, dtype=x.dtype, device=x.device))


class StickBreakingTransform(Transform):
    """From n real numbers to the simplex of n + 1, by breaking off one piece after another.

    >>> votive.distributions.StickBreakingTransform()(votive.zeros(2))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        part = inner_sigmoid(x - _centre(x, x.shape[-1]))
        rest = F.cumprod(1 - part, -1)
        one = F.ones_like(x[..., :1])
        return F.cat([part, one], -1) * F.cat([one, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        # Rounding may leave a rest below zero.
        rest = F.clamp(1 - F.cumsum(pieces, -1), dt.finfo(y.dtype).tiny)
        return F.log(pieces) - F.log(rest) + _centre(y, pieces.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _centre(x, x.shape[-1])
        # Each piece changes by `piece (1 - part)`, and 1 - sigmoid(x) is sigmoid(-x).
        return F.sum(F.logsigmoid(-x) + F.log(y[..., :-1]), -1)

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return _longer(shape, 1)

    def inverse_shape(self, shape: Sequence[int]) -> Size:
        return _longer(shape, -1)


class LowerCholeskyTransform(Transform):
    """From real matrices to lower triangular ones with a positive diagonal.

    >>> votive.distributions.LowerCholeskyTransform()(votive.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return F.tril(x, -1) + F.diag_embed(F.exp(F.diagonal(x, 0, -2, -1)))

    def _inverse(self, y: Tensor) -> Tensor:
        return F.tril(y, -1) + F.diag_embed(F.log(F.diagonal(y, 0, -2, -1)))


class PositiveDefiniteTransform(Transform):
    """From real matrices to positive-definite ones.

    >>> votive.distributions.PositiveDefiniteTransform()(votive.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return F.matmul(factor, F.transpose(factor, -2, -1))

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
