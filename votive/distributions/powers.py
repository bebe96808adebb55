"""Distributions of powers of simple ones: Pareto, GeneralizedPareto, Weibull, Kumaraswamy, InverseGamma,
FisherSnedecor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .continuous import EULER_GAMMA, Exponential, Uniform
from .distribution import Distribution
from .gamma import Gamma
from .parameters import NUMBERS, ParameterLike, broadcast_all
from .scalar_transforms import AffineTransform, ExpTransform, PowerTransform
from .transformed import TransformedDistribution


class Pareto(TransformedDistribution):
    """Values above `scale`, density `alpha scale^alpha / x^(alpha + 1)`.

    >>> votive.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: ParameterLike, alpha: ParameterLike, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(Pareto, _instance)
        new.scale, new.alpha = self.scale.expand(batch_shape), self.alpha.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        a = F.clamp(self.alpha, 1)  # infinite up to 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = F.clamp(self.alpha, 2)  # infinite up to 2
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return F.log(self.scale / self.alpha) + (1 + 1 / self.alpha)


class GeneralizedPareto(Distribution):
    """What lies beyond a high threshold `loc`: `1 - (1 + c z)^(-1 / c)` is the chance of at most z scales above it.

    >>> votive.distributions.GeneralizedPareto(0.0, 1.0, 0.25).mean
    tensor(1.3333)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(
        self, loc: ParameterLike, scale: ParameterLike, concentration: ParameterLike, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def _straight(self) -> Tensor:
        """Where the concentration is so near 0 that the limit, an exponential distribution, is meant."""
        return F.isclose(self.concentration, F.zeros_like(self.concentration))

    @property
    def _safe(self) -> Tensor:
        return F.where(self._straight, 1.0, self.concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        high = F.where(self.concentration < 0, self.loc - self.scale / self._safe, math.inf)
        return constraints.interval(self.loc, high)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(F.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z, c = (value - self.loc) / self.scale, self._safe
        bent = -(1 + 1 / c) * F.log1p(c * z)
        return F.where(self._straight, -z, bent) - F.log(self.scale)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the chance of more than `value`."""
        self._check(value)
        z, c = (value - self.loc) / self.scale, self._safe
        return F.where(self._straight, -z, -F.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of the chance of at most `value`."""
        return F.log1p(-F.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return F.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        rest, c = F.log1p(-value), self._safe
        return self.loc + self.scale * F.where(self._straight, -rest, F.expm1(-c * rest) / c)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return F.where(c < 1, self.loc + self.scale / (1 - F.where(c < 1, c, 0.0)), math.nan)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        below = F.where(c < 0.5, c, 0.0)
        return F.where(c < 0.5, self.scale**2 / ((1 - below) ** 2 * (1 - 2 * below)), math.nan)

    def entropy(self) -> Tensor:
        return F.log(self.scale) + self.concentration + 1

    @property
    def mode(self) -> Tensor:
        return self.loc


class Weibull(TransformedDistribution):
    """Lifetimes, density `(k / s) (x / s)^(k - 1) exp(-(x / s)^k)` with scale s and concentration k.

    >>> votive.distributions.Weibull(2.0, 1.0).mean
    tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: ParameterLike, concentration: ParameterLike, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(F.ones_like(self.scale), validate_args=validate_args)
        maps = [PowerTransform(1 / self.concentration), AffineTransform(0, self.scale)]
        super().__init__(base, maps, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale, new.concentration = self.scale.expand(batch_shape), self.concentration.expand(batch_shape)
        base = self.base_dist.expand(batch_shape)
        maps = [PowerTransform(1 / new.concentration), AffineTransform(0, new.scale)]
        TransformedDistribution.__init__(new, base, maps, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * F.exp(F.lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** (1 / k)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return self.scale**2 * (F.exp(F.lgamma(1 + 2 / k)) - F.exp(2 * F.lgamma(1 + 1 / k)))

    def entropy(self) -> Tensor:
        k = self.concentration
        return EULER_GAMMA * (1 - 1 / k) + F.log(self.scale / k) + 1


def _kumaraswamy_moment(a: Tensor, b: Tensor, n: int) -> Tensor:
    """E x^n."""
    first = 1 + n / a
    return F.exp(F.lgamma(first) + F.lgamma(b) - F.lgamma(first + b)) * b


class Kumaraswamy(TransformedDistribution):
    """Numbers between 0 and 1 with the distribution function `1 - (1 - x^a)^b`.

    >>> votive.distributions.Kumaraswamy(1.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: ParameterLike, concentration0: ParameterLike, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero = F.full_like(self.concentration0, 0.0)
        base = Uniform(zero, zero + 1, validate_args=validate_args)
        super().__init__(base, self._maps(self.concentration1, self.concentration0), validate_args=validate_args)

    @staticmethod
    def _maps(a: Tensor, b: Tensor) -> list[Any]:
        return [PowerTransform(1 / b), AffineTransform(1, -1), PowerTransform(1 / a)]

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        a, b = self.concentration1.expand(batch_shape), self.concentration0.expand(batch_shape)
        new.concentration1, new.concentration0 = a, b
        base = self.base_dist.expand(batch_shape)
        TransformedDistribution.__init__(new, base, self._maps(a, b), validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return _kumaraswamy_moment(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        # Without a peak inside there is none to name.
        log_mode = F.log((a - 1) / (a * b - 1)) / a
        inside = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
        return F.where(inside, F.exp(log_mode), math.nan)

    @property
    def variance(self) -> Tensor:
        return _kumaraswamy_moment(self.concentration1, self.concentration0, 2) - self.mean**2

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = F.digamma(b + 1) + EULER_GAMMA
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - F.log(a) - F.log(b)


class InverseGamma(TransformedDistribution):
    """1 / x for x from Gamma(concentration, rate).

    >>> votive.distributions.InverseGamma(3.0, 2.0).mean
    tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: ParameterLike, rate: ParameterLike, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-F.ones_like(base.rate)), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(InverseGamma, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        return F.where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        return F.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + F.log(self.rate) + F.lgamma(a) - (1 + a) * F.digamma(a)


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom.

    >>> votive.distributions.FisherSnedecor(2.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: ParameterLike, df2: ParameterLike, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        shape = () if isinstance(df1, NUMBERS) and isinstance(df2, NUMBERS) else self.df1.shape
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(FisherSnedecor, _instance)
        new.df1, new.df2 = self.df1.expand(batch_shape), self.df2.expand(batch_shape)
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def mean(self) -> Tensor:
        return F.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        value = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return F.where(self.df1 > 2, value, math.nan)

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        return F.where(b > 4, 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        upper, lower = (g.rsample(sample_shape).reshape(shape) for g in (self._gamma1, self._gamma2))
        tiny = dt.finfo(lower.dtype).tiny
        return F.clamp(upper / F.clamp(lower, tiny), tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        beta = F.lgamma(a + b) - F.lgamma(a) - F.lgamma(b)
        return beta + a * F.log(ratio) + (a - 1) * F.log(value) - (a + b) * F.log1p(ratio * value)
