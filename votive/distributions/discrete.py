"""Distributions over counts: Bernoulli, Binomial, Geometric, Poisson. Knows formulas, not how
numbers are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..autograd import no_grad
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .parameters import Odds, ParameterLike, broadcast_all, only_one, unfilled

_CHANCE: Any = {"probs": constraints.unit_interval, "logits": constraints.real}


def _cross_entropy(logits: Tensor, chance: Tensor) -> Tensor:
    """`-p log sigmoid(x) - (1 - p) log sigmoid(-x)`, x the logits and p the chance."""
    return (1 - chance) * logits - F.logsigmoid(logits)


class Bernoulli(Odds, ExponentialFamily):
    """One with chance `probs`, else zero.

    >>> votive.distributions.Bernoulli(0.25).variance
    tensor(0.1875)
    """

    arg_constraints = _CHANCE
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _is_binary = True

    def __init__(
        self, probs: ParameterLike | None = None, logits: ParameterLike | None = None, validate_args: bool | None = None
    ) -> None:
        name, value = only_one(probs, logits)
        vars(self)[name] = broadcast_all(value)[0]
        super().__init__(self._given.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        larger = (self.probs >= 0.5).to(self.probs.dtype)
        return F.where(self.probs == 0.5, math.nan, larger)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return F.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -_cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        given = self._given
        return self._enumerated(F.arange(2, dtype=given.dtype, device=given.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (F.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return -F.logsigmoid(-natural_params[0])


class Binomial(Odds, Distribution):
    """The number of successes in `total_count` trials.

    >>> votive.distributions.Binomial(10, probs=votive.tensor(0.5)).mean
    tensor(5.)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_CHANCE}
    has_enumerate_support = True
    _is_binary = True

    def __init__(
        self,
        total_count: ParameterLike = 1,
        probs: ParameterLike | None = None,
        logits: ParameterLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, value = only_one(probs, logits)
        count, vars(self)[name] = broadcast_all(total_count, value)
        self.total_count = count.type_as(self._given)
        super().__init__(self._given.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return F.minimum(F.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return F.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, x = self.total_count, self.logits
        ways = F.lgamma(n + 1) - F.lgamma(value + 1) - F.lgamma(n - value + 1)
        # value log p + (n - value) log(1 - p), with x = log p - log(1 - p).
        return ways + value * x + n * F.logsigmoid(-x)

    def _trials(self, what: str) -> int:
        n = int(self.total_count.max())
        if not bool((self.total_count == n).all()):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return n

    def entropy(self) -> Tensor:
        self._trials("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -F.sum(F.exp(log_prob) * log_prob, 0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n, given = self._trials("enumerate_support"), self._given
        return self._enumerated(F.arange(n + 1, dtype=given.dtype, device=given.device), expand)


class Geometric(Odds, Distribution):
    """Failures before the first success: `P(k) = (1 - p)^k p`.

    >>> votive.distributions.Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = _CHANCE
    support = constraints.nonnegative_integer
    _is_binary = True

    def __init__(
        self, probs: ParameterLike | None = None, logits: ParameterLike | None = None, validate_args: bool | None = None
    ) -> None:
        name, value = only_one(probs, logits)
        vars(self)[name] = broadcast_all(value)[0]
        super().__init__(self._given.shape, validate_args=validate_args)
        if self._validate_args and name == "probs" and not bool((self.probs > 0).all()):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return F.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            times = unfilled(self._extended_shape(sample_shape), self.probs).exponential_()
            return F.floor(times / -F.log1p(-self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        # 0 log(0) is 0 here: a sure success has no failures before it.
        failing = F.where((probs == 1) & (value == 0), 0, probs)
        return value * F.log1p(-failing) + F.log(self.probs)

    def entropy(self) -> Tensor:
        return _cross_entropy(self.logits, self.probs) / self.probs


class Poisson(ExponentialFamily):
    """Events in a unit of time: `P(k) = rate^k exp(-rate) / k!`.

    >>> votive.distributions.Poisson(4.0).stddev
    tensor(2.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: ParameterLike, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return F.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return F.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return F.xlogy(value, rate) - rate - F.lgamma(value + 1)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (F.log(self.rate),)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        return F.exp(natural_params[0])
