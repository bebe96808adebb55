"""The normal distribution of vectors, by covariance, precision or Cholesky factor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import linalg
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution
from .parameters import lazy_property, standard_normal

_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def _factor_of_inverse(precision: Tensor) -> Tensor:
    """L, lower triangular, with `L L^T` the inverse: rows and columns are turned round twice."""
    flipped = linalg.cholesky(F.flip(precision, (-2, -1)))
    upper_inverse = F.transpose(F.flip(flipped, (-2, -1)), -2, -1)
    one = F.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(upper_inverse, one, upper=False)


def squared_length(factor: Tensor, x: Tensor) -> Tensor:
    """`|L^-1 x|^2` for factors (*batch, n, n) and vectors (*sample, *batch, n)."""
    *shape, n = x.shape
    batch = factor.shape[:-2]
    # Samples become columns, so that each factor is worked through once.
    columns = F.movedim(x.reshape(-1, *shape[len(shape) - len(batch) :], n), 0, -1)
    solved = linalg.solve_triangular(factor, columns, upper=False)
    return F.movedim(F.sum(solved**2, -2), -1, 0).reshape(shape)


def half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of `L L^T`."""
    return F.sum(F.log(F.diagonal(factor, 0, -2, -1)), -1)


class MultivariateNormal(Distribution):
    """Normal vectors of mean `loc`; give exactly one of the three matrices.

    >>> d = votive.distributions.MultivariateNormal(votive.zeros(2), votive.eye(2))
    >>> d.log_prob(votive.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _also_held = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = (covariance_matrix, precision_matrix, scale_tril)
        given = [(n, m) for n, m in zip(_FORMS, matrices, strict=True) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = F.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = loc.expand(*batch, -1)
        vars(self)[name] = matrix.expand(*batch, -1, -1)
        super().__init__(batch, loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            factor = scale_tril
        elif precision_matrix is not None:
            factor = _factor_of_inverse(precision_matrix)
        else:
            factor = linalg.cholesky(covariance_matrix)
        self._unbroadcasted_scale_tril = factor.expand(*batch, -1, -1)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return F.matmul(self._unbroadcasted_scale_tril, F.transpose(self._unbroadcasted_scale_tril, -2, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return F.cholesky_inverse(self._unbroadcasted_scale_tril)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return F.sum(self._unbroadcasted_scale_tril**2, -1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + F.matmul(self._unbroadcasted_scale_tril, eps.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = squared_length(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + off) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return 0.5 * constant + half_log_det(self._unbroadcasted_scale_tril)

    def _like(self, other: Distribution) -> None:
        if self._event_shape != other._event_shape:
            raise ValueError(
                "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
            )
