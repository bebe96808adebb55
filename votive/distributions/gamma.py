"""The gamma distribution and its kin: Gamma, Chi2, Beta, Dirichlet, StudentT. Knows formulas, not
how numbers are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .parameters import ParameterLike, broadcast_all, standard_normal


class Gamma(ExponentialFamily):
    """The gamma distribution, density `rate^a x^(a - 1) exp(-rate x) / Gamma(a)`.

    >>> votive.distributions.Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: ParameterLike, rate: ParameterLike, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return F.clamp((self.concentration - 1) / self.rate, 0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = F._standard_gamma(self.concentration.expand(shape)) / self.rate
        # Zero is no value of this distribution; lifting it must not cut the gradient.
        kept = value.detach()
        return value + (F.clamp(kept, dt.finfo(value.dtype).tiny) - kept)

    def log_prob(self, value: Tensor) -> Tensor:
        if not isinstance(value, Tensor):
            value = F.tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        a, rate = self.concentration, self.rate
        return F.xlogy(a, rate) + F.xlogy(a - 1, value) - rate * value - F.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return F.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - F.log(self.rate) + F.lgamma(a) + (1 - a) * F.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        return F.lgamma(x + 1) - (x + 1) * F.log(-y)


class Chi2(Gamma):
    """The sum of `df` squared normal numbers: Gamma(df / 2, 1 / 2).

    >>> votive.distributions.Chi2(4.0).variance
    tensor(8.)
    """

    arg_constraints = {"df": constraints.positive}
    _also_held = ("concentration", "rate")

    def __init__(self, df: ParameterLike, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2


class Dirichlet(ExponentialFamily):
    """Points of the simplex, density proportional to the product of `x_i^(a_i - 1)`.

    >>> votive.distributions.Dirichlet(votive.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        *batch, event = concentration.shape
        super().__init__(batch, (event,), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / F.sum(self.concentration, -1, True)

    @property
    def mode(self) -> Tensor:
        above = F.clamp(self.concentration - 1, 0.0)
        inner = above / F.sum(above, -1, True)
        # Where every concentration is below 1 the density has its peaks in the corners, all alike.
        corner = F.zeros_like(inner)
        corner[..., 0] = 1
        return F.where(F.all(self.concentration < 1, -1, True), corner, inner)

    @property
    def variance(self) -> Tensor:
        total = F.sum(self.concentration, -1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return F._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        density = F.sum(F.xlogy(self.concentration - 1, value), -1)
        return density - self._log_normalizer(self.concentration)

    def entropy(self) -> Tensor:
        a = self.concentration
        total = F.sum(a, -1)
        spread = (total - a.shape[-1]) * F.digamma(total) - F.sum((a - 1) * F.digamma(a), -1)
        return self._log_normalizer(a) + spread

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (a,) = natural_params
        return F.sum(F.lgamma(a), -1) - F.lgamma(F.sum(a, -1))


class Beta(ExponentialFamily):
    """Chances, density proportional to `x^(a - 1) (1 - x)^(b - 1)`, a and b the concentrations.

    >>> votive.distributions.Beta(1.0, 3.0).mean
    tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: ParameterLike, concentration0: ParameterLike, validate_args: bool | None = None
    ) -> None:
        both = F.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return new

    @property
    def concentration1(self) -> Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self._dirichlet.mean[..., 0]

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self._dirichlet.variance[..., 0]

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._dirichlet.log_prob(F.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return self._dirichlet._log_normalizer(F.stack(natural_params, -1))


class StudentT(Distribution):
    """Student's distribution: a normal number over the root of Chi2(df) / df.

    >>> votive.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: ParameterLike, loc: ParameterLike = 0.0, scale: ParameterLike = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return F.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale**2 * self.df / (self.df - 2)
        heavy = F.where(self.df > 1, F.full_like(self.df, math.inf), math.nan)
        return F.where(self.df > 2, finite, heavy)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (normal * F.rsqrt(squares / self.df))

    def _log_peak(self) -> Tensor:
        """Minus the logarithm of the density at the mode."""
        half = 0.5 * self.df
        ratio = F.lgamma(half) - F.lgamma(half + 0.5)
        return F.log(self.scale) + 0.5 * F.log(self.df * math.pi) + ratio

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * F.log1p(off**2 / self.df) - self._log_peak()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        return (half + 0.5) * (F.digamma(half + 0.5) - F.digamma(half)) + self._log_peak()
