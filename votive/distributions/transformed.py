"""Distributions made by mapping another one: TransformedDistribution, LogNormal, HalfNormal,
HalfCauchy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..autograd import no_grad
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .combined import Independent
from .continuous import Cauchy, Normal
from .distribution import Distribution
from .parameters import ParameterLike, sum_rightmost
from .scalar_transforms import AbsTransform, ExpTransform
from .transform import ComposeTransform, Transform


class TransformedDistribution(Distribution):
    """The distribution of y = t(x): `log p(y) = log p(x) - log |dy/dx|`.

    >>> D = votive.distributions
    >>> D.TransformedDistribution(D.Normal(0.0, 1.0), D.ExpTransform()).log_prob(votive.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        own = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        coupled = whole.domain.event_dim
        if len(shape) < coupled:
            raise ValueError(f"base_distribution needs to have shape with size at least {coupled}, but got {shape}.")
        result = whole.forward_shape(shape)
        wanted = whole.inverse_shape(result)
        if shape != wanted:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - own])
        if coupled > own:
            base_distribution = Independent(base_distribution, coupled - own)
        self.base_dist: Any = base_distribution
        event_dim = whole.codomain.event_dim + max(own - coupled, 0)
        cut = len(result) - event_dim
        super().__init__(result[:cut], result[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = Size(batch_shape) + self.event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        region = self.transforms[-1].codomain
        extra = len(self.event_shape) - region.event_dim
        return constraints.independent(region, extra) if extra > 0 else region

    @property
    def has_rsample(self) -> bool:
        return bool(self.base_dist.has_rsample)

    def _through(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim, log_det = len(self.event_shape), []
        y = value
        for t in reversed(self.transforms):
            x = t.inv(y)
            event_dim += t.domain.event_dim - t.codomain.event_dim
            log_slope = t.log_abs_det_jacobian(x, y)
            log_det.append(sum_rightmost(log_slope, event_dim - t.domain.event_dim))
            y = x
        inner = self.base_dist.log_prob(y)
        return sum_rightmost(inner, event_dim - len(self.base_dist.event_shape)) - sum(log_det)

    def _reflected(self, chance: Tensor) -> Tensor:
        """1 - chance where the maps together fall."""
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return chance if isinstance(sign, int) and sign == 1 else sign * (chance - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._reflected(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._reflected(value)))


class LogNormal(TransformedDistribution):
    """The exponential of a normal number.

    >>> votive.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: ParameterLike, scale: ParameterLike, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return F.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Tensor:
        return F.exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Tensor:
        square = self.scale**2
        return F.expm1(square) * F.exp(2 * self.loc + square)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class _Folded(TransformedDistribution):
    """The absolute value of a distribution that is symmetric around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        doubled = self.base_dist.log_prob(value) + math.log(2)
        return F.where(value >= 0, doubled, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Folded):
    """The absolute value of a normal number of mean zero.

    >>> votive.distributions.HalfNormal(1.0).mean
    tensor(0.7979)
    """

    def __init__(self, scale: ParameterLike, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Folded):
    """The absolute value of a Cauchy number around zero.

    >>> votive.distributions.HalfCauchy(1.0).icdf(votive.tensor(0.25))
    tensor(0.4142)
    """

    def __init__(self, scale: ParameterLike, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
