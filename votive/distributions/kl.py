"""Kullback-Leibler divergence: the table of formulas, and those within one family."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import linalg
from ..ops.registry import F
from ..tensor import Tensor
from .categorical import Categorical, OneHotCategorical
from .combined import Independent
from .continuous import EULER_GAMMA, Cauchy, Exponential, Gumbel, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .gamma import Beta, Dirichlet, Gamma
from .multivariate_normal import MultivariateNormal, half_log_det, squared_length
from .parameters import sum_rightmost
from .transformed import HalfNormal, TransformedDistribution

Formula = Callable[[Any, Any], Tensor]

_TABLE: dict[tuple[type, type], Formula] = {}
_FOUND: dict[tuple[type, type], Formula | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Declare the decorated function as the divergence of `type_p` from `type_q`.

    >>> votive.distributions.register_kl(votive.distributions.Normal, 3)
    Traceback (most recent call last):
    TypeError: register_kl: expected classes of distributions, got Normal and 3.
    """
    if not all(isinstance(t, type) for t in (type_p, type_q)):
        names = " and ".join(getattr(t, "__name__", repr(t)) for t in (type_p, type_q))
        raise TypeError(f"register_kl: expected classes of distributions, got {names}.")

    def register(fn: Formula) -> Formula:
        _TABLE[type_p, type_q] = fn
        _FOUND.clear()
        return fn

    return register


def _find(type_p: type, type_q: type) -> Formula | None:
    """The formula of the nearest base classes; p decides first, and a tie is warned of."""
    distance = {
        (a, b): (type_p.__mro__.index(a), type_q.__mro__.index(b))
        for a, b in _TABLE
        if issubclass(type_p, a) and issubclass(type_q, b)
    }
    if not distance:
        return None
    by_p = min(distance, key=lambda pair: distance[pair])
    by_q = min(distance, key=lambda pair: distance[pair][::-1])
    if _TABLE[by_p] is not _TABLE[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _TABLE[by_p]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of `log p(x) - log q(x)` over x from p.

    >>> D = votive.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    types = type(p), type(q)
    if types not in _FOUND:
        _FOUND[types] = _find(*types)
    formula = _FOUND[types]
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {types[0].__name__} and q type {types[1].__name__}"
        )
    return formula(p, q)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log-normaliser.

    Nielsen and Nock 2010, "Entropies and cross-entropies of exponential families".
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    theta, normalizer, slopes = p._tangent()
    total = q._log_normalizer(*q._natural_params) - normalizer
    for mine, other, slope in zip(theta, q._natural_params, slopes, strict=True):
        total = total - sum_rightmost((other - mine) * slope, len(q.event_shape))
    return total


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    off = ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + off - 1 - F.log(ratio))


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    off, ratio = F.abs(p.loc - q.loc), p.scale / q.scale
    return off / q.scale + ratio * F.exp(-off / p.scale) - F.log(ratio) - 1


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Chyzak and Nielsen 2019, "A closed-form formula for the Kullback-Leibler divergence between
    Cauchy distributions".
    """
    apart = (p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2
    return F.log(apart) - F.log(4 * p.scale * q.scale)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, off = p.scale / q.scale, (p.loc - q.loc) / q.scale
    rest = ratio * EULER_GAMMA - F.log(ratio) - (1 + EULER_GAMMA)
    return off + F.exp(F.lgamma(1 + ratio) - off) + rest


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    outside = (q.low > p.low) | (q.high < p.high)
    return F.where(outside, math.inf, F.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - F.log(ratio) - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    shape = (a - b) * F.digamma(a) + F.lgamma(b) - F.lgamma(a)
    return shape + b * F.log(p.rate / q.rate) + (q.rate - p.rate) * a / p.rate


def _dirichlet_formula(a: Tensor, b: Tensor) -> Tensor:
    total_a, total_b = F.sum(a, -1), F.sum(b, -1)
    means = F.digamma(a) - F.digamma(total_a).unsqueeze(-1)
    normalisers = F.sum(F.lgamma(b) - F.lgamma(a), -1) + F.lgamma(total_a) - F.lgamma(total_b)
    return normalisers + F.sum((a - b) * means, -1)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    return _dirichlet_formula(p.concentration, q.concentration)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    return _dirichlet(p._dirichlet, q._dirichlet)


def _surprise(chance: Tensor, gap: Tensor, other: Tensor) -> Tensor:
    """chance * gap, gap being log(chance / other): infinite where only `other` is zero."""
    impossible = F.where(other == 0, math.inf, chance * gap)
    return F.where(chance == 0, 0, impossible)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    yes = F.logsigmoid(p.logits) - F.logsigmoid(q.logits)
    no = F.logsigmoid(-p.logits) - F.logsigmoid(-q.logits)
    return _surprise(p.probs, yes, q.probs) + _surprise(1 - p.probs, no, 1 - q.probs)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return F.sum(_surprise(p.probs, p.logits - q.logits, q.probs), -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + F.log1p(-p.probs) - F.log1p(-q.probs)
    return F.where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - F.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (F.log(p.rate) - F.log(q.rate)) - (p.rate - q.rate)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    p._like(q)
    n = p.event_shape[0]
    a, b = F.broadcast_tensors(p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril)
    spread = F.sum(linalg.solve_triangular(b, a, upper=False) ** 2, (-2, -1))
    off = squared_length(b, (p.loc - q.loc).expand(b.shape[:-1]))
    return half_log_det(b) - half_log_det(a) + 0.5 * (spread + off - n)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    n = p.reinterpreted_batch_ndims
    if n != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: two Independent must reinterpret the same number of dimensions, "
            f"got {n} and {q.reinterpreted_batch_ndims}."
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), n)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """A bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: two TransformedDistributions must have the same transforms and event shape."
        )
    return kl_divergence(p.base_dist, q.base_dist)
