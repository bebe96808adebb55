"""What every distribution has: shapes, validation, expansion. Knows no particular distribution."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import autograd
from ..autograd import no_grad
from ..core.layout import Size
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .parameters import lazy_property, sum_rightmost


class Distribution:
    """A batch of distributions over events: samples have `sample + batch + event` shape.

    >>> d = votive.distributions.Normal(votive.zeros(3), 1.0)
    >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
    (votive.Size([3]), votive.Size([]), votive.Size([2, 3]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    # Tensors held beside those of arg_constraints; all start with the batch shape.
    _also_held: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and values unless told; True at first."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}.")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    # --- what it is -------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The region of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The region of the samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return F.sqrt(self.variance)

    # --- what it does -----------------------------------------------------------------------------

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples that carry no gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples that carry a gradient to the parameters."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        """Logarithm of the density, or of the chance, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The chance of a sample up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The value up to which a sample comes with this chance."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The mean of `-log_prob`."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return F.exp(self.entropy())

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        """The same distribution for a larger batch; parameters are expanded, not copied."""
        new = self._get_checked_instance(self._family(), _instance)
        batch = Size(batch_shape)
        held = {*self.arg_constraints, *self._also_held}
        for name, value in vars(self).items():
            if name in held:
                new.__dict__[name] = value.expand(batch + value.shape[len(self._batch_shape) :])
            else:
                new.__dict__.setdefault(name, value)
        new._batch_shape = batch
        return new

    def __repr__(self) -> str:
        held = {k: v for k, v in vars(self).items() if k in self.arg_constraints}
        shown = {k: held[k] for k in self.arg_constraints if k in held}
        parts = [f"{k}: {v if v.numel() == 1 else v.shape}" for k, v in shown.items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    # --- for subclasses ---------------------------------------------------------------------------

    def _family(self) -> type:
        """The class of this package that the instance belongs to."""
        package = __name__.rpartition(".")[0]
        return next(c for c in type(self).__mro__ if c.__module__.startswith(package))

    def _get_checked_instance(self, cls: type, _instance: Distribution | None = None) -> Any:
        """An empty instance to expand into; a class with an __init__ of its own must bring one."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]  # compared, not called
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return object.__new__(type(self))

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        """The shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Values of the support, shape (n, *event), set against the batch."""
        n, *event = values.shape
        values = values.reshape(n, *[1] * len(self._batch_shape), *event)
        return values.expand(n, *self._batch_shape, *event) if expand else values

    def _validate_parameters(self) -> None:
        try:
            regions = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set it to {{}} or "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, region in regions.items():
            derived = name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(region) or derived:
                continue
            value = getattr(self, name)
            if not bool(region.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{region!r}, but found invalid values:\n{value}"
                )

    def _check(self, value: Tensor) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Refuse a value of a wrong shape or outside the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event, expected = self._event_shape, self._batch_shape + self._event_shape
        if tuple(value.shape[max(value.ndim - len(event), 0) :]) != tuple(event):
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {event}.")
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != j and 1 not in (i, j):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )


class ExponentialFamily(Distribution):
    """Densities `exp(<t(x), theta> - F(theta) + k(x))`: entropy and divergence follow from F.

    >>> issubclass(votive.distributions.Normal, votive.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """theta."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """F."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of k."""
        raise NotImplementedError

    def _tangent(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """theta, F and the gradient of F there, which is the mean of t."""
        theta = [p.detach().requires_grad_() for p in self._natural_params]
        with autograd.enable_grad():
            normalizer = self._log_normalizer(*theta)
            slopes = autograd.grad(normalizer.sum(), theta, create_graph=True)
        return theta, normalizer, slopes

    def entropy(self) -> Tensor:
        carrier = self._mean_carrier_measure
        theta, total, slopes = self._tangent()
        for p, slope in zip(theta, slopes, strict=True):
            total = total - sum_rightmost(p * slope, len(self._event_shape))
        return total - carrier
