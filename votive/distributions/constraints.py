"""Regions that parameters and samples must lie in. Knows tensors, no distribution.

`constraint.check(value)` says for each event of `value` whether it lies inside; an event is what
the last `event_dim` dimensions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import linalg
from ..core import dtype as dt
from ..ops.registry import F
from ..tensor import Tensor
from .parameters import ParameterLike

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values.

    >>> votive.distributions.constraints.positive.check(votive.tensor([-1.0, 2.0]))
    tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event lies inside."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


# --- regions known only to an instance ------------------------------------------------------------


class _Dependent(Constraint):
    """Stands where the region depends on other values."""

    def __init__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _static(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self) -> bool:
        return bool(self._static("is_discrete"))

    @property
    def event_dim(self) -> int:
        return int(self._static("event_dim"))

    def __call__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property of instances whose class attribute is a dependent constraint."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = NotImplemented,
        event_dim: int = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(  # type: ignore[override]  # as a decorator it takes the function
        self, fn: Callable[[Any], Any]
    ) -> _DependentProperty:
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    """Whether the region depends on other values, so that it cannot be checked alone."""
    return isinstance(constraint, _Dependent)


# --- regions built of others ----------------------------------------------------------------------


class _IndependentConstraint(Constraint):
    """Events of more dimensions: inside if all of their parts are."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        inside = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if inside.ndim < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return F.all(inside, tuple(range(-n, 0))) if n else inside

    def __repr__(self) -> str:
        inner = f"{self.base_constraint!r}, {self.reinterpreted_batch_ndims}"
        return f"{type(self).__name__[1:]}({inner})"


class MixtureSameFamilyConstraint(Constraint):
    """Inside the regions of all components, which the components' last batch dimension counts."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return F.all(self.base_constraint.check(F.unsqueeze(value, -1 - self.event_dim)), -1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Joined(Constraint):
    """A region for each part of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max(c.event_dim for c in self.cseq)


class _Cat(_Joined):
    """Parts of `lengths` elements, as `votive.cat` joins them."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        parts = F.split(value, self.lengths, self.dim)
        return F.cat([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Joined):
    """Parts of one element, as `votive.stack` joins them."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)
        if self.dim + self.event_dim < 0:
            self.event_dim += 1

    def check(self, value: Tensor) -> Tensor:
        parts = F.unbind(value, self.dim)
        return F.stack([c.check(v) for c, v in zip(self.cseq, parts, strict=True)], self.dim)


# --- numbers --------------------------------------------------------------------------------------


class _Real(Constraint):
    """Anything but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Shows its limits."""

    def __repr__(self) -> str:
        limits = ", ".join(f"{name}={limit}" for name, limit in vars(self).items())
        return f"{type(self).__name__[1:]}({limits})"


class _From(_Bounded):
    def __init__(self, lower_bound: ParameterLike) -> None:
        self.lower_bound = lower_bound


class _To(_Bounded):
    def __init__(self, upper_bound: ParameterLike) -> None:
        self.upper_bound = upper_bound


class _Between(_Bounded):
    def __init__(self, lower_bound: ParameterLike, upper_bound: ParameterLike) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_From):
    """(lower_bound, inf]"""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_From):
    """[lower_bound, inf]"""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_To):
    """[-inf, upper_bound)"""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """[lower_bound, upper_bound]"""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """[lower_bound, upper_bound)"""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerGreaterThan(_From):
    """Integers from lower_bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _IntegerLessThan(_To):
    """Integers up to upper_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerInterval(_Between):
    """Integers from lower_bound to upper_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


# --- vectors --------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """A single 1 among zeros."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return F.all(boolean.check(value), -1) & (F.sum(value, -1) == 1)


class _Simplex(Constraint):
    """Not negative, and adding up to 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return F.all(value >= 0, -1) & (F.abs(F.sum(value, -1) - 1) < 1e-6)


class _Multinomial(Constraint):
    """Counts that add up to at most upper_bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: ParameterLike) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return F.all(value >= 0, -1) & (F.sum(value, -1) <= self.upper_bound)


# --- matrices -------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    """Zero above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return F.all(F.tril(value) == value, (-2, -1))


class _LowerCholesky(_LowerTriangular):
    """Lower triangular with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & F.all(F.diagonal(value, 0, -2, -1) > 0, -1)


class _CorrCholesky(_LowerCholesky):
    """A Cholesky factor of a correlation matrix: its rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        # Ten rounding steps for each of the squares that add up to a length.
        slack = dt.finfo(value.dtype).eps * value.shape[-1] * 10
        length = F.sqrt(F.sum(value.detach() * value.detach(), -1))
        return super().check(value) & F.all(F.abs(length - 1) <= slack, -1)


class _Square(Constraint):
    """As many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        equal = value.shape[-2] == value.shape[-1]
        return F.full(value.shape[:-2], equal, dtype=dt.bool_, device=value.device)


class _Symmetric(_Square):
    """Equal to its transpose, but for rounding."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        mirrored = F.transpose(value, -2, -1)
        return F.all(F.isclose(value, mirrored, atol=1e-6), (-2, -1))


class _PositiveSemidefinite(_Symmetric):
    """Symmetric, with no negative eigenvalue."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return F.all(linalg.eigvalsh(value) >= 0, -1)


class _PositiveDefinite(_Symmetric):
    """Symmetric, with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.cholesky_ex(value).info == 0


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
