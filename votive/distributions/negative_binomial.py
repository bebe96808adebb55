"""The negative binomial distribution: successes before a number of failures."""

from __future__ import annotations

from collections.abc import Sequence

from ..autograd import no_grad
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .parameters import Odds, ParameterLike, broadcast_all, lazy_property, only_one


class NegativeBinomial(Odds, Distribution):
    """How often an event of chance `probs` happens before its opposite has happened `total_count` times.

    >>> votive.distributions.NegativeBinomial(3.0, votive.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _is_binary = True

    def __init__(
        self,
        total_count: ParameterLike,
        probs: ParameterLike | None = None,
        logits: ParameterLike | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, value = only_one(probs, logits)
        self.total_count, vars(self)[name] = broadcast_all(total_count, value)
        self.total_count = self.total_count.type_as(self._given)
        super().__init__(self._given.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * F.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return F.clamp(F.floor((self.total_count - 1) * F.exp(self.logits)), 0)

    @property
    def variance(self) -> Tensor:
        return self.mean / F.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, F.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return F.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        chances = n * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = F.lgamma(n + value) - F.lgamma(1 + value) - F.lgamma(n)
        # Nothing happens before no failure, and is then certain: 0 ways must not spoil that.
        return chances + F.where(n + value == 0, 0.0, ways)
