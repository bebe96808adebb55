"""Kullback-Leibler divergences with Pareto, ContinuousBernoulli and LowRankMultivariateNormal.

Each is the entropy of p and the mean under p of log q, or infinite where p has values that q cannot have.
"""

from __future__ import annotations

import math
from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .continuous import Exponential, Gumbel, Laplace, Normal, Uniform
from .gamma import Beta, Gamma
from .kl import register_kl
from .kl_between import _infinite, _mean_log
from .matrices import LowRankMultivariateNormal
from .multivariate_normal import MultivariateNormal, half_log_det
from .powers import Pareto
from .relaxed import ContinuousBernoulli

for _p in (Exponential, Gamma, Gumbel, Laplace, Normal, Pareto):
    register_kl(_p, ContinuousBernoulli)(_infinite)
for _other in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal):
    register_kl(_other, Pareto)(_infinite)
for _q in (Beta, Uniform):
    register_kl(Pareto, _q)(_infinite)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _by_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - F.logsigmoid(-q.logits) - q._log_norm()


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_by_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return F.where((p.high > 1) | (p.low < 0), math.inf, _by_continuous_bernoulli(p, q))


@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Pareto, Exponential)
def _by_exponential(p: Any, q: Exponential) -> Tensor:
    return -p.entropy() - F.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
@register_kl(Pareto, Normal)
def _by_normal(p: Any, q: Normal) -> Tensor:
    square = 2 * q.scale**2
    return -p.entropy() + 0.5 * F.log(math.pi * square) + (p.variance + (p.mean - q.loc) ** 2) / square


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_by_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    return F.where((q.low > 0) | (q.high < 1), math.inf, -p.entropy() + F.log(q.high - q.low))


def _mean_log_pareto(p: Pareto) -> Tensor:
    return F.log(p.scale) + 1 / p.alpha


@register_kl(Pareto, Gamma)
def _pareto_by_gamma(p: Pareto, q: Gamma) -> Tensor:
    a, rate = q.concentration, q.rate
    value = -p.entropy() + F.lgamma(a) - a * F.log(rate) - (a - 1) * _mean_log_pareto(p) + rate * p.mean
    return F.where(p.alpha <= 1, math.inf, value)


def _by_pareto(q: Pareto, mean_log: Tensor) -> Tensor:
    """-E log q, from E log x."""
    return -F.log(q.alpha) - q.alpha * F.log(q.scale) + (q.alpha + 1) * mean_log


@register_kl(Pareto, Pareto)
def _pareto_by_pareto(p: Pareto, q: Pareto) -> Tensor:
    return F.where(p.scale < q.scale, math.inf, -p.entropy() + _by_pareto(q, _mean_log_pareto(p)))


@register_kl(Uniform, Pareto)
def _uniform_by_pareto(p: Uniform, q: Pareto) -> Tensor:
    return F.where(p.low < q.scale, math.inf, -p.entropy() + _by_pareto(q, _mean_log(p)))


def _log_det(d: Any) -> Tensor:
    return d._log_det() if isinstance(d, LowRankMultivariateNormal) else 2 * half_log_det(d.scale_tril)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two normal vectors with different event shapes cannot be computed")
    precision = q.precision_matrix
    trace = F.sum(precision * p.covariance_matrix, (-2, -1))
    gap = (q.loc - p.loc).unsqueeze(-1)
    off = F.sum(gap * F.matmul(precision, gap), (-2, -1))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + off - p.event_shape[0])
