"""Distributions of numbers in between: relaxed and continuous Bernoulli, relaxed categories, LogisticNormal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .continuous import Normal
from .distribution import Distribution, ExponentialFamily
from .parameters import Odds, ParameterLike, broadcast_all, clamp_probs, only_one
from .scalar_transforms import ExpTransform, SigmoidTransform
from .transformed import TransformedDistribution
from .vector_transforms import StickBreakingTransform


def _uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    return clamp_probs(F.rand(shape, dtype=like.dtype, device=like.device))


class _Binary(Odds, Distribution):
    """What has one chance per event, as `probs` or `logits`."""

    _is_binary = True

    def _take(self, probs: ParameterLike | None, logits: ParameterLike | None) -> Size:
        name, value = only_one(probs, logits)
        (vars(self)[name],) = broadcast_all(value)
        return Size(()) if not isinstance(value, Tensor) else self._given.shape


class LogitRelaxedBernoulli(_Binary):
    """The log-odds of RelaxedBernoulli.

    >>> d = votive.distributions.relaxed.LogitRelaxedBernoulli(votive.tensor(2.0), probs=votive.tensor(0.5))
    >>> d.log_prob(votive.tensor(0.0))
    tensor(-0.6931)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: ParameterLike | None = None,
        logits: ParameterLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(LogitRelaxedBernoulli, _instance)
        new.temperature = self.temperature
        for name in ("probs", "logits"):
            if name in vars(self):
                vars(new)[name] = vars(self)[name].expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs, u = clamp_probs(self.probs.expand(shape)), _uniform(shape, self._given)
        return (F.log(u) - F.log1p(-u) + F.log(probs) - F.log1p(-probs)) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        gap = logits - value * self.temperature
        return F.log(self.temperature) + gap + 2 * F.logsigmoid(-gap)


class _Relaxed(TransformedDistribution):
    """A map of what has a temperature and chances or odds."""

    @property
    def temperature(self) -> Tensor:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Bernoulli smoothed to numbers between 0 and 1, which have gradients (Maddison et al. 2016, Jang et al. 2016).

    >>> votive.distributions.RelaxedBernoulli(votive.tensor(2.2), probs=votive.tensor([0.1, 0.8])).sample().shape
    votive.Size([2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: ParameterLike | None = None,
        logits: ParameterLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))


class ExpRelaxedCategorical(Distribution):
    """The logarithm of RelaxedOneHotCategorical.

    >>> d = votive.distributions.relaxed.ExpRelaxedCategorical(votive.tensor(1.0), probs=votive.ones(3))
    >>> d.event_shape
    votive.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = _uniform(shape, self.logits)
        scores = (self.logits - F.log(-F.log(u))) / self.temperature
        return scores - F.logsumexp(scores, -1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = F.broadcast_tensors(self.logits, value)
        n = self._event_shape[0]
        scale = math.lgamma(n) + (n - 1) * F.log(self.temperature)
        score = logits - value * self.temperature
        return F.sum(score - F.logsumexp(score, -1, True), -1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """One-hot vectors smoothed to points of the simplex, which have gradients (Maddison et al. 2016, Jang et al. 2016).

    >>> d = votive.distributions.RelaxedOneHotCategorical(votive.tensor(2.2), probs=votive.tensor([0.2, 0.8]))
    >>> bool((d.sample().sum() - 1).abs() < 1e-5)
    True
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))


class LogisticNormal(TransformedDistribution):
    """Points of the simplex from normal numbers, by breaking a stick.

    >>> votive.distributions.LogisticNormal(votive.zeros(2), votive.ones(2)).sample().shape
    votive.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: ParameterLike, scale: ParameterLike, validate_args: bool | None = None) -> None:
        base: Any = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    @property
    def loc(self) -> Tensor:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.base_dist.scale


class ContinuousBernoulli(_Binary, ExponentialFamily):
    """Numbers between 0 and 1 with density proportional to `p^x (1 - p)^(1 - x)` (Loaiza-Ganem and Cunningham, 2019).

    Near p = 1/2, between `lims`, formulas are replaced by their Taylor series.

    >>> votive.distributions.ContinuousBernoulli(votive.tensor(0.5)).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: ParameterLike | None = None,
        logits: ParameterLike | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        shape = self._take(probs, logits)
        self._lims = lims
        Distribution.__init__(self, shape, validate_args=validate_args)
        if "probs" in vars(self):
            vars(self)["probs"] = clamp_probs(self.probs)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        for name in ("probs", "logits"):
            if name in vars(self):
                vars(new)[name] = vars(self)[name].expand(batch_shape)
        Distribution.__init__(new, batch_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _outside(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        return F.where(self._outside(), self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """The logarithm of the constant: `log(2 atanh(1 - 2p) / (1 - 2p))`."""
        p = self._cut()
        below, above = F.where(p <= 0.5, p, 0.0), F.where(p >= 0.5, p, 1.0)
        value = F.log(F.abs(F.log1p(-p) - F.log(p)))
        value = value - F.where(p <= 0.5, F.log1p(-2 * below), F.log(2 * above - 1))
        x = (self.probs - 0.5) ** 2
        return F.where(self._outside(), value, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        x = self.probs - 0.5
        series = 0.5 + (1 / 3 + 16 / 45 * x**2) * x
        return F.where(self._outside(), p / (2 * p - 1) + 1 / (F.log1p(-p) - F.log(p)), series)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        x = (self.probs - 0.5) ** 2
        value = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / (F.log1p(-p) - F.log(p)) ** 2
        return F.where(self._outside(), value, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(F.rand(shape, dtype=self._given.dtype, device=self._given.device))

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.rsample(sample_shape).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return value * logits + F.logsigmoid(-logits) + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut()
        inner = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inner = F.where(self._outside(), inner, value)
        return F.where(value <= 0, 0.0, F.where(value >= 1, 1.0, inner))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        inner = (F.log1p(-p + value * (2 * p - 1)) - F.log1p(-p)) / (F.log(p) - F.log1p(-p))
        return F.where(self._outside(), inner, value)

    def entropy(self) -> Tensor:
        low, high = F.log1p(-self.probs), F.log(self.probs)
        return self.mean * (low - high) - self._log_norm() - low

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        (x,) = natural_params
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = F.where(outside, x, self._lims[0] - 0.5)
        return F.where(outside, F.log(F.abs(F.expm1(cut))) - F.log(F.abs(cut)), 0.5 * x + x**2 / 24 - x**4 / 2880)
