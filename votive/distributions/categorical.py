"""Distributions over classes: Categorical, OneHotCategorical, Multinomial. Knows formulas, not how
numbers are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..core import dtype as dt
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .discrete import Binomial
from .distribution import Distribution
from .parameters import Odds, broadcast_all, only_one

_CHANCES: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(Odds, Distribution):
    """One of K classes, with chances along the last dimension, which need not add up to 1.

    >>> votive.distributions.Categorical(votive.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = _CHANCES
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        name, value = only_one(probs, logits)
        if value.ndim < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            value = value / F.sum(value, -1, True)
        else:
            value = value - F.logsumexp(value, -1, True)
        vars(self)[name] = value
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return F.full_like(self.probs[..., 0], math.nan)

    @property
    def mode(self) -> Tensor:
        return F.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        return F.full_like(self.probs[..., 0], math.nan)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = F.multinomial(rows, math.prod(sample_shape), True)
        return F.transpose(drawn, 0, 1).reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        index, logits = F.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return F.gather(logits, -1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # A class without a chance has logits of -inf, and adds nothing.
        finite = F.clamp(self.logits, dt.finfo(self.logits.dtype).min)
        return -F.sum(finite * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(F.arange(self._num_events, device=self._given.device), expand)


class _OverClasses(Distribution):
    """What rests on a Categorical: its classes are the event dimension here."""

    arg_constraints = _CHANCES
    _categorical: Categorical

    def _rest_on(self, probs: Tensor | None, logits: Tensor | None, validate_args: bool | None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        Distribution.__init__(self, shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape


class OneHotCategorical(_OverClasses):
    """A Categorical whose samples are vectors with a single 1.

    >>> votive.distributions.OneHotCategorical(votive.tensor([1.0, 3.0])).mode
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._rest_on(probs, logits, validate_args)

    def _one_hot(self, index: Tensor) -> Tensor:
        classes = F.arange(self._event_shape[0], device=index.device)
        return (index.unsqueeze(-1) == classes).to(self.probs.dtype)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(F.argmax(value, -1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        given = self._categorical._given
        rows = F.eye(self._event_shape[0], dtype=given.dtype, device=given.device)
        return self._enumerated(rows, expand)


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """A OneHotCategorical whose samples hand their gradient to the chances unchanged.

    Bengio, Léonard and Courville 2013, "Estimating or propagating gradients through stochastic
    neurons for conditional computation".

    >>> votive.distributions.OneHotCategoricalStraightThrough(votive.ones(2)).has_rsample
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OverClasses):
    """How often each class comes in `total_count` draws.

    >>> votive.distributions.Multinomial(8, votive.tensor([1.0, 3.0])).mean
    tensor([2., 6.])
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._rest_on(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn = F.movedim(self._categorical.sample((self.total_count, *sample_shape)), 0, -1)
        counts = F.zeros(shape, dtype=self.probs.dtype, device=self.probs.device)
        return counts.scatter_add_(-1, drawn, F.ones_like(drawn, dtype=counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        ways = F.lgamma(F.sum(value, -1) + 1) - F.sum(F.lgamma(value + 1), -1)
        # A class without a chance that never came counts for nothing.
        logits = F.where((value == 0) & (logits == -math.inf), 0, logits)
        return ways + F.sum(logits * value, -1)

    def entropy(self) -> Tensor:
        """n H(classes) - log n! + the sum over classes of E log k!, k being binomial."""
        one = Binomial(self.total_count, probs=self.probs, validate_args=False)
        counts = one.enumerate_support(False)[1:]
        repeats = F.exp(one.log_prob(counts)) * F.lgamma(counts + 1)
        draws = self.total_count * self._categorical.entropy()
        return draws - math.lgamma(self.total_count + 1) + F.sum(repeats, (0, -1))
