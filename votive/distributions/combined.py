"""Distributions made of others of one family: Independent, MixtureSameFamily."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import no_grad
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .parameters import sum_rightmost


class Independent(Distribution):
    """Batch dimensions on the right, taken as part of the event.

    >>> normals = votive.distributions.Normal(votive.zeros(2, 3), 1.0)
    >>> votive.distributions.Independent(normals, 1).log_prob(votive.zeros(2, 3)).shape
    votive.Size([2])
    """

    arg_constraints: Any = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        cut = len(batch) - reinterpreted_batch_ndims
        event = batch[cut:] + base_distribution.event_shape
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:cut], event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        inner = self.event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(Size(batch_shape) + inner)
        return new

    @property
    def has_rsample(self) -> bool:
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:
        return not self.reinterpreted_batch_ndims and bool(self.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        inner, n = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(inner, n) if n else inner

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamily(Distribution):
    """A mixture: a Categorical chooses among the last batch dimension of the components.

    >>> D = votive.distributions
    >>> parts = D.Normal(votive.tensor([-1.0, 1.0]), 1.0)
    >>> D.MixtureSameFamily(D.Categorical(votive.tensor([1.0, 3.0])), parts).mean
    tensor(0.5000)
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The mixture distribution needs to be a Categorical.")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The component distribution needs to be a Distribution.")
        chosen, (*batch, number) = mixture_distribution, component_distribution.batch_shape
        for i, j in zip(reversed(chosen.batch_shape), reversed(batch), strict=False):
            if i != j and 1 not in (i, j):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({chosen.batch_shape}) is not compatible "
                    f"with `component_distribution.batch_shape`({Size(batch)})"
                )
        known = chosen.logits.shape[-1]
        if known != number:
            raise ValueError(
                f"`mixture_distribution component` ({known}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({number})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = super().expand(batch_shape, _instance)
        number = self._mixture_distribution.param_shape[-1:]
        inner = self._component_distribution.expand(Size(batch_shape) + number)
        new._component_distribution = inner
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def _dim(self) -> int:
        """The dimension that counts the components."""
        return -1 - len(self._event_shape)

    def _weighted(self, values: Tensor) -> Tensor:
        weights = self._mixture_distribution.probs
        weights = weights.reshape(*weights.shape, *[1] * len(self._event_shape))
        return F.sum(weights * values, self._dim)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        parts = self._component_distribution
        off = parts.mean - F.unsqueeze(self.mean, self._dim)
        return self._weighted(parts.variance) + self._weighted(off**2)

    def cdf(self, value: Tensor) -> Tensor:
        parts = self._component_distribution.cdf(F.unsqueeze(value, self._dim))
        return F.sum(parts * self._mixture_distribution.probs, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        parts = self._component_distribution.log_prob(F.unsqueeze(value, self._dim))
        weights = F.log_softmax(self._mixture_distribution.logits, -1)
        return F.logsumexp(parts + weights, -1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            parts = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            at = chosen.reshape(*chosen.shape, 1, *[1] * len(self._event_shape))
            index = at.expand(*chosen.shape, 1, *self._event_shape)
            return F.squeeze(F.gather(parts, self._dim, index), self._dim)

    def __repr__(self) -> str:
        inner = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"{type(self).__name__}({inner})"
