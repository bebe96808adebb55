"""Distributions over real numbers given by place and scale: Normal, Laplace, Cauchy, Gumbel,
Uniform, Exponential. Knows formulas, not how numbers are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .parameters import ParameterLike, broadcast_all, standard_normal, unfilled

EULER_GAMMA = 0.57721566490153286061  # OEIS A001620


class LocationScale(Distribution):
    """A distribution over all real numbers around `loc`, stretched by `scale`."""

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: ParameterLike, scale: ParameterLike, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution, density `exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))`.

    >>> votive.distributions.Normal(0.0, 1.0).log_prob(votive.tensor(0.0))
    tensor(-0.9189)
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = (value - self.loc) ** 2 / (2 * self.variance)
        return -off - F.log(self.scale) - 0.5 * math.log(2 * math.pi)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + F.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * F.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 * (1 + math.log(2 * math.pi)) + F.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return 0.5 * F.log(-math.pi / y) - x * x / (4 * y)


class Laplace(LocationScale):
    """The two-sided exponential distribution, density `exp(-|x - loc| / scale) / (2 scale)`.

    >>> votive.distributions.Laplace(0.0, 1.0).log_prob(votive.tensor(0.0))
    tensor(-0.6931)
    """

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(2)

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        # The difference of two exponential numbers: its tail is as long as theirs.
        shape = self._extended_shape(sample_shape)
        first, second = unfilled((2, *shape), self.loc).exponential_()
        return self.loc + self.scale * (first - second)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -F.log(2 * self.scale) - F.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        off = value - self.loc
        return 0.5 - 0.5 * F.sign(off) * F.expm1(-F.abs(off) / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        off = value - 0.5
        return self.loc - self.scale * F.sign(off) * F.log1p(-2 * F.abs(off))

    def entropy(self) -> Tensor:
        return 1 + F.log(2 * self.scale)


class Cauchy(LocationScale):
    """The Cauchy distribution, density `1 / (pi scale (1 + ((x - loc) / scale)^2))`.

    >>> votive.distributions.Cauchy(0.0, 1.0).cdf(votive.tensor(1.0))
    tensor(0.7500)
    """

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return F.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = unfilled(self._extended_shape(sample_shape), self.loc).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = (value - self.loc) / self.scale
        return -math.log(math.pi) - F.log(self.scale) - F.log1p(off**2)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return F.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * F.tan(math.pi * (value - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + F.log(self.scale)


class Gumbel(LocationScale):
    """The distribution of the largest of many, `P(x < v) = exp(-exp(-(v - loc) / scale))`.

    >>> votive.distributions.Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER_GAMMA

    @property
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

    @property
    def variance(self) -> Tensor:
        return self.stddev**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        times = unfilled(self._extended_shape(sample_shape), self.loc).exponential_()
        return self.loc - self.scale * F.log(times)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = (self.loc - value) / self.scale
        return off - F.exp(off) - F.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return F.exp(-F.exp((self.loc - value) / self.scale))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * F.log(-F.log(value))

    def entropy(self) -> Tensor:
        return F.log(self.scale) + (1 + EULER_GAMMA)


class Uniform(Distribution):
    """All values from `low` to `high` alike.

    >>> votive.distributions.Uniform(0.0, 2.0).entropy()
    tensor(0.6931)
    """

    has_rsample = True

    def __init__(self, low: ParameterLike, high: ParameterLike, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * math.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        part = unfilled(self._extended_shape(sample_shape), self.low).uniform_()
        return self.low + part * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = (self.low <= value) & (self.high > value)
        return F.log(inside.to(self.low.dtype)) - F.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return F.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return F.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """Waiting times, density `rate exp(-rate x)`.

    >>> votive.distributions.Exponential(2.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: ParameterLike, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate**-2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return unfilled(self._extended_shape(sample_shape), self.rate).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return F.log(self.rate) - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -F.expm1(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -F.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - F.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -F.log(-natural_params[0])
