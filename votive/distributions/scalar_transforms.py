"""Maps of each number by itself: exp, powers, sigmoid, tanh, affine. Knows tensors and constraints,
no distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .parameters import NUMBERS, ParameterLike, broadcast_all, lazy_property
from .transform import Transform

if TYPE_CHECKING:
    from .distribution import Distribution


class ExpTransform(Transform):
    """y = exp(x).

    >>> votive.distributions.ExpTransform()(votive.tensor(0.0))
    tensor(1.)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return F.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x.

    >>> votive.distributions.PowerTransform(2.0)(votive.tensor(3.0))
    tensor(9.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: ParameterLike, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return F.sign(self.exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _equal(self.exponent, other.exponent)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return F.log(F.abs(self.exponent * y / x))

    def forward_shape(self, shape: Sequence[int]) -> Size:
        return Size(F.broadcast_shapes(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


def inner_sigmoid(x: Tensor) -> Tensor:
    """sigmoid, kept off 0 and 1 so that it can be inverted."""
    kind = dt.finfo(x.dtype)
    return F.clamp(F.sigmoid(x), kind.tiny, 1 - kind.eps)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)).

    >>> votive.distributions.SigmoidTransform()(votive.tensor(0.0))
    tensor(0.5000)
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return inner_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        kind = dt.finfo(y.dtype)
        y = F.clamp(y, kind.tiny, 1 - kind.eps)
        return F.log(y) - F.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return F.logsigmoid(x) + F.logsigmoid(-x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x)).

    >>> votive.distributions.SoftplusTransform()(votive.tensor(0.0))
    tensor(0.6931)
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.log(-F.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return F.logsigmoid(x)


class TanhTransform(Transform):
    """y = tanh(x); with a cache, values that round to 1 can be inverted too.

    >>> votive.distributions.TanhTransform().inv(votive.tensor(0.0))
    tensor(0.)
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return F.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2) = log 4 + log sigmoid(2x) + log sigmoid(-2x), which does not cancel.
        return 2 * math.log(2) + F.logsigmoid(2 * x) + F.logsigmoid(-2 * x)


class AbsTransform(Transform):
    """y = |x|; its inverse takes the positive side.

    >>> votive.distributions.AbsTransform()(votive.tensor(-2.0))
    tensor(2.)
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


def _equal(a: object, b: object) -> bool:
    same = a == b
    return bool(same.all()) if isinstance(same, Tensor) else bool(same)


class AffineTransform(Transform):
    """y = loc + scale x.

    >>> votive.distributions.AffineTransform(1.0, 2.0)(votive.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: ParameterLike, scale: ParameterLike, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> constraints.Constraint:
        n = self._event_dim
        return constraints.independent(constraints.real, n) if n else constraints.real

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and _equal(self.loc, other.loc) and _equal(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, NUMBERS):
            return (self.scale > 0) - (self.scale < 0)
        return F.sign(self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, NUMBERS):
            result = F.full_like(x, math.log(abs(self.scale)))
        else:
            result = F.log(F.abs(self.scale)).expand(x.shape)
        return F.sum(result, tuple(range(-self._event_dim, 0))) if self._event_dim else result

    def forward_shape(self, shape: Sequence[int]) -> Size:
        own = [tuple(getattr(v, "shape", ())) for v in (self.loc, self.scale)]
        return Size(F.broadcast_shapes(tuple(shape), *own))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution, from its support to [0, 1].

    >>> normal = votive.distributions.Normal(0.0, 1.0)
    >>> votive.distributions.CumulativeDistributionTransform(normal)(votive.tensor(0.0))
    tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
