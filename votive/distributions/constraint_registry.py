"""Which map leads from all real numbers to a constraint: `biject_to` bijective ones, `transform_to` simple ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from . import constraints, transforms
from .constraints import Constraint

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Functions from constraints to maps, by the class of the constraint.

    >>> D = votive.distributions
    >>> D.biject_to(D.constraints.positive)
    ExpTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    @overload
    def register(self, constraint: Any) -> Callable[[Factory], Factory]: ...

    @overload
    def register(self, constraint: Any, factory: Factory) -> Factory: ...

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Let `factory(constraint)` give the map for a class of constraints; without it, a decorator."""
        if factory is None:
            return lambda fn: self.register(constraint, fn)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> transforms.Transform:
        for kind in type(constraint).__mro__:
            if kind in self._registry:
                return self._registry[kind](constraint)
        raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[Factory], Factory]:
    def keep(fn: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, fn)
            transform_to.register(kind, fn)
        return fn

    return keep


@_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@biject_to.register(constraints.independent)
def _biject_to_independent(constraint: Any) -> transforms.Transform:
    return transforms.IndependentTransform(biject_to(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


@transform_to.register(constraints.independent)
def _transform_to_independent(constraint: Any) -> transforms.Transform:
    inner = transform_to(constraint.base_constraint)
    return transforms.IndependentTransform(inner, constraint.reinterpreted_batch_ndims)


@_both(constraints.positive, constraints.nonnegative)
def _to_positive(constraint: Any) -> transforms.Transform:
    if getattr(constraint, "lower_bound", 0) in (0, 0.0):
        return transforms.ExpTransform()
    return _to_greater(constraint)


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_greater(constraint: Any) -> transforms.Transform:
    low = constraint.lower_bound
    if isinstance(low, (int, float)) and low == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(low, 1)])


@_both(constraints.less_than)
def _to_less(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and low == 0 and isinstance(high, (int, float)) and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.cat)
def _biject_to_cat(constraint: Any) -> transforms.Transform:
    return transforms.CatTransform([biject_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@transform_to.register(constraints.cat)
def _transform_to_cat(constraint: Any) -> transforms.Transform:
    return transforms.CatTransform([transform_to(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


@biject_to.register(constraints.stack)
def _biject_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([biject_to(c) for c in constraint.cseq], constraint.dim)


@transform_to.register(constraints.stack)
def _transform_to_stack(constraint: Any) -> transforms.Transform:
    return transforms.StackTransform([transform_to(c) for c in constraint.cseq], constraint.dim)
