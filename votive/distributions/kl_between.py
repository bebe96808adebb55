"""Kullback-Leibler divergence between two families: entropy of p, and the mean under p of log q.

What log q needs of p is little: its mean and variance, the mean of log x, or that of exp(-x / s).
"""

from __future__ import annotations

import math
from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .continuous import EULER_GAMMA, Exponential, Gumbel, Laplace, Normal, Uniform
from .discrete import Bernoulli, Binomial, Poisson
from .distribution import Distribution
from .gamma import Beta, Gamma
from .kl import register_kl
from .parameters import ParameterLike


def _infinite(p: Distribution, q: Distribution) -> Tensor:
    """p has values that q cannot have."""
    return F.full(p.batch_shape, math.inf, dtype=p.mean.dtype, device=p.mean.device)


for _p, _others in {
    Exponential: (Beta, Uniform),
    Gamma: (Beta, Uniform),
    Gumbel: (Beta, Exponential, Gamma, Uniform),
    Laplace: (Beta, Exponential, Gamma, Uniform),
    Normal: (Beta, Exponential, Gamma, Uniform),
    Poisson: (Bernoulli, Binomial),
}.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)


def _where_within(p: Any, low: ParameterLike, high: ParameterLike, value: Tensor) -> Tensor:
    """`value`, infinite where the uniform p goes beyond [low, high]."""
    return F.where((p.low < low) | (p.high > high), math.inf, value)


# --- means under p --------------------------------------------------------------------------------


def _integral_of_log(x: Tensor) -> Tensor:
    """The antiderivative x log x - x, which is 0 at 0."""
    return F.xlogy(x, x) - x


def _mean_log(p: Beta | Exponential | Uniform) -> Tensor:
    """E log x."""
    if isinstance(p, Beta):
        return F.digamma(p.concentration1) - F.digamma(p.concentration1 + p.concentration0)
    if isinstance(p, Exponential):
        return -EULER_GAMMA - F.log(p.rate)
    return (_integral_of_log(p.high) - _integral_of_log(p.low)) / (p.high - p.low)


def _mean_exp(p: Normal | Exponential | Gamma | Uniform, scale: Tensor) -> Tensor:
    """E exp(-x / scale)."""
    if isinstance(p, Normal):
        ratio = p.scale / scale
        return F.exp(ratio * ratio / 2 - p.loc / scale)
    if isinstance(p, Exponential):
        return p.rate * scale / (p.rate * scale + 1)
    if isinstance(p, Gamma):
        return (1 + 1 / (p.rate * scale)) ** -p.concentration
    ends = F.exp(-p.low / scale) - F.exp(-p.high / scale)
    return scale * ends / (p.high - p.low)


# --- by q -----------------------------------------------------------------------------------------


@register_kl(Beta, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _to_normal(p: Beta | Exponential | Gamma | Gumbel | Laplace | Uniform, q: Normal) -> Tensor:
    square = p.variance + (p.mean - q.loc) ** 2
    width = F.log(q.scale) + 0.5 * math.log(2 * math.pi)
    return width + square / (2 * q.scale**2) - p.entropy()


@register_kl(Normal, Laplace)
def _to_laplace(p: Normal, q: Laplace) -> Tensor:
    off = p.loc - q.loc
    z = off / p.scale
    # The mean of |x - loc| is that of a folded normal number.
    peak = math.sqrt(2 / math.pi) * p.scale * F.exp(-0.5 * z * z)
    distance = peak + off * F.erf(z * math.sqrt(0.5))
    return F.log(2 * q.scale) + distance / q.scale - p.entropy()


@register_kl(Exponential, Gumbel)
@register_kl(Gamma, Gumbel)
@register_kl(Normal, Gumbel)
@register_kl(Uniform, Gumbel)
def _to_gumbel(p: Exponential | Gamma | Normal | Uniform, q: Gumbel) -> Tensor:
    place = F.exp(q.loc / q.scale) * _mean_exp(p, q.scale)
    return F.log(q.scale) + (p.mean - q.loc) / q.scale + place - p.entropy()


@register_kl(Beta, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p: Beta | Gamma, q: Exponential) -> Tensor:
    return q.rate * p.mean - F.log(q.rate) - p.entropy()


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return _where_within(p, 0, math.inf, _to_exponential(p, q))


@register_kl(Beta, Gamma)
@register_kl(Exponential, Gamma)
def _to_gamma(p: Beta | Exponential, q: Gamma) -> Tensor:
    a = q.concentration
    density = F.lgamma(a) - a * F.log(q.rate) + (1 - a) * _mean_log(p) + q.rate * p.mean
    return density - p.entropy()


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return _where_within(p, 0, math.inf, _to_gamma(p, q))


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    outside = (q.low > 0) | (q.high < 1)
    return F.where(outside, math.inf, F.log(q.high - q.low) - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    mirrored = Uniform(1 - p.high, 1 - p.low, validate_args=False)
    normaliser = F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)
    density = normaliser + (1 - a) * _mean_log(p) + (1 - b) * _mean_log(mirrored)
    return _where_within(p, 0, 1, density - p.entropy())


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * F.log(q.rate) - p.entropy()
