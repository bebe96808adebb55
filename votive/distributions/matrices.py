"""Distributions of matrices and of long vectors: LKJCholesky, Wishart, LowRankMultivariateNormal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import linalg
from ..ops.registry import F
from ..tensor import Tensor
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Chi2
from .multivariate_normal import _factor_of_inverse, half_log_det
from .parameters import ParameterLike, broadcast_all, lazy_property, standard_normal


def _transposed(x: Tensor) -> Tensor:
    return F.transpose(x, -2, -1)


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices C with density proportional to `det(C)^(concentration - 1)`.

    >>> factor = votive.distributions.LKJCholesky(3, 0.5).sample()
    >>> bool(((factor @ factor.T).diagonal() - 1).abs().max() < 1e-5)
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: ParameterLike = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        like = self.concentration
        places = F.arange(dim - 1, dtype=like.dtype, device=like.device)
        zero = F.zeros(1, dtype=like.dtype, device=like.device)
        marginal = like + 0.5 * (dim - 2)
        halves = 0.5 * F.cat([zero, places])
        first, second = halves + 0.5, marginal.unsqueeze(-1) - halves
        self._beta = Beta(first, second)
        super().__init__(like.shape, (dim, dim), validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        new.dim, new.concentration = self.dim, self.concentration.expand(batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """The onion method of Lewandowski, Kurowicka and Joe 2009, section 3.2."""
        lengths = self._beta.sample(sample_shape).unsqueeze(-1)
        directions = standard_normal(self._extended_shape(sample_shape), self.concentration).tril(-1)
        norms = F.norm(directions, dim=-1, keepdim=True)
        rows = F.sqrt(lengths) * (directions / F.where(norms == 0, 1.0, norms))
        rows = F.cat([F.zeros_like(rows[..., :1, :]), rows[..., 1:, :]], -2)
        rest = F.sqrt(F.clamp(1 - F.sum(rows**2, -1), 1e-30))
        return rows + F.diag_embed(rest)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        like, n = self.concentration, self.dim
        diagonal = F.diagonal(value, 0, -2, -1)[..., 1:]
        order = F.arange(2, n + 1, device=like.device)
        order = 2 * (like - 1).unsqueeze(-1) + n - order
        unnormalised = F.sum(order * F.log(diagonal), -1)
        less = n - 1
        alpha = like + 0.5 * less
        denominator = F.lgamma(alpha) * less
        numerator = F.mvlgamma(alpha - 0.5, less)
        return unnormalised - (0.5 * less * math.log(math.pi) + numerator - denominator)


_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


def _many_lgamma(x: Tensor, p: int) -> Tensor:
    places = F.arange(p, dtype=x.dtype, device=x.device)
    return F.sum(F.lgamma(x.unsqueeze(-1) - 0.5 * places), -1) + p * (p - 1) / 4 * math.log(math.pi)


def _many_digamma(x: Tensor, p: int) -> Tensor:
    places = F.arange(p, dtype=x.dtype, device=x.device)
    return F.sum(F.digamma(x.unsqueeze(-1) - 0.5 * places), -1)


class Wishart(ExponentialFamily):
    """`df` degrees of freedom of a sum of outer products of normal vectors; give exactly one of the three matrices.

    >>> votive.distributions.Wishart(votive.tensor(3.0), votive.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:
        low = self.event_shape[-1] - 1
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(low),
        }

    def __init__(
        self,
        df: ParameterLike,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = (covariance_matrix, precision_matrix, scale_tril)
        given = [(n, m) for n, m in zip(_FORMS, matrices, strict=True) if m is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.ndim < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        count = df if isinstance(df, Tensor) else F.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = F.broadcast_shapes(matrix.shape[:-2], count.shape)
        n = matrix.shape[-1]
        self.df = count.expand(batch)
        vars(self)[name] = matrix.expand(*batch, n, n)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        super().__init__(batch, (n, n), validate_args=validate_args)
        if scale_tril is not None:
            factor = scale_tril
        elif precision_matrix is not None:
            factor = _factor_of_inverse(precision_matrix)
        else:
            factor = linalg.cholesky(covariance_matrix)
        self._factor = factor.expand(*batch, n, n)
        places = F.arange(n, dtype=self.df.dtype, device=self.df.device)
        self._chi2 = Chi2(self.df.unsqueeze(-1) - places)

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        n = self.event_shape[-1]
        new.df, new._factor = self.df.expand(batch_shape), self._factor.expand(*batch_shape, n, n)
        for name in _FORMS:
            if name in vars(self):
                vars(new)[name] = vars(self)[name].expand(*batch_shape, n, n)
        new._chi2 = self._chi2.expand((*batch_shape, n))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._factor

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return F.matmul(self._factor, _transposed(self._factor))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return F.cholesky_inverse(self._factor)

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[0] - 1
        return F.where(factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = F.diagonal(covariance, 0, -2, -1)
        return self.df[..., None, None] * (covariance**2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Bartlett's decomposition."""
        shape = self._extended_shape(sample_shape)
        diagonal = F.sqrt(self._chi2.rsample(sample_shape).reshape(shape[:-1]))
        lower = standard_normal(shape, self.df).tril(-1) + F.diag_embed(diagonal)
        product = F.matmul(self._factor, lower)
        return F.matmul(product, _transposed(product))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, p = self.df, self.event_shape[-1]
        solved = F.cholesky_solve(value, self._factor)
        trace = F.sum(F.diagonal(solved, 0, -2, -1), -1)
        return (
            -nu * (p * math.log(2) / 2 + half_log_det(self._factor))
            - _many_lgamma(nu / 2, p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self.event_shape[-1]
        return (
            (p + 1) * (p * math.log(2) / 2 + half_log_det(self._factor))
            + _many_lgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _many_digamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self.event_shape[-1] - 1) / 2

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        x, y = natural_params
        p = self.event_shape[-1]
        log_det = linalg.slogdet(-2 * x).logabsdet
        return (y + (p + 1) / 2) * (-log_det + math.log(2) * p) + _many_lgamma(y + (p + 1) / 2, p)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is `W W^T + diag(D)`, W of few columns: nothing of full size is factored.

    >>> D = votive.distributions
    >>> D.LowRankMultivariateNormal(votive.zeros(2), votive.tensor([[1.0], [0.0]]), votive.ones(2)).variance
    tensor([2., 1.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _also_held = ("_capacitance_tril",)

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        batch = F.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc, self.cov_diag = loc.expand(*batch, -1), cov_diag.expand(*batch, -1)
        self.cov_factor = cov_factor.expand(*batch, -1, -1)
        super().__init__(batch, event, validate_args=validate_args)
        # W^T D^-1 W + I, of the size of W's columns (Woodbury).
        scaled = _transposed(self.cov_factor) / self.cov_diag.unsqueeze(-2)
        inner = F.matmul(scaled, self.cov_factor)
        one = F.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        self._capacitance_tril = linalg.cholesky(inner + one)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        return F.sum(self.cov_factor**2, -1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return F.matmul(self.cov_factor, _transposed(self.cov_factor)) + F.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        scaled = _transposed(self.cov_factor) / self.cov_diag.unsqueeze(-2)
        a = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return F.diag_embed(1 / self.cov_diag) - F.matmul(_transposed(a), a)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)  # type: ignore[arg-type]
        each = standard_normal(shape, self.loc)
        return self.loc + F.matmul(self.cov_factor, few.unsqueeze(-1)).squeeze(-1) + F.sqrt(self.cov_diag) * each

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + F.sum(F.log(self.cov_diag), -1)

    def _squared_length(self, x: Tensor) -> Tensor:
        scaled = F.matmul(_transposed(self.cov_factor) / self.cov_diag.unsqueeze(-2), x.unsqueeze(-1))
        factor = self._capacitance_tril.expand(*scaled.shape[:-2], *self._capacitance_tril.shape[-2:])
        inner = linalg.solve_triangular(factor, scaled, upper=False).squeeze(-1)
        return F.sum(x**2 / self.cov_diag, -1) - F.sum(inner**2, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        off = self._squared_length(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + off)

    def entropy(self) -> Tensor:
        value = 0.5 * (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det())
        return value.expand(self._batch_shape) if self._batch_shape else value
