"""Samples fit densities, moments and entropies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D

from .values import t

CONTINUOUS: list[Any] = [
    D.Normal(t(1.0), t(2.0)),
    D.Laplace(t(-1.0), t(0.5)),
    D.Cauchy(t(0.0), t(2.0)),
    D.Gumbel(t(0.5), t(1.5)),
    D.Uniform(t(-1.0), t(3.0)),
    D.Exponential(t(2.5)),
    D.Gamma(t(0.3), t(2.0)),
    D.Gamma(t(7.0), t(0.5)),
    D.Chi2(t(3.0)),
    D.LogNormal(t(0.2), t(0.7)),
    D.HalfNormal(t(1.3)),
    D.HalfCauchy(t(0.8)),
    D.TransformedDistribution(D.Normal(t(0.0), t(1.0)), [D.AffineTransform(1.0, -2.0)]),
    D.TransformedDistribution(D.Normal(t(0.3), t(1.0)), [D.SigmoidTransform()]),
    D.MixtureSameFamily(D.Categorical(t(1.0, 3.0)), D.Normal(t(-2.0, 1.0), t(0.5, 1.0))),
]


@pytest.mark.parametrize("d", CONTINUOUS, ids=lambda d: type(d).__name__)
def test_samples_follow_the_distribution_function(d: Any) -> None:
    vt.manual_seed(3)
    n = 20_000
    ranks = np.sort(d.cdf(d.sample((n,))).numpy())
    gap = np.abs(ranks - (np.arange(n) + 0.5) / n).max() + 0.5 / n
    # Kolmogorov's distribution: a larger gap has a chance of 0.1 %.
    assert gap * math.sqrt(n) < 1.95


MOMENTS: list[Any] = [
    *[
        d
        for d in CONTINUOUS
        if not isinstance(d, (D.Cauchy, D.HalfCauchy)) and type(d) is not D.TransformedDistribution
    ],
    D.Beta(t(0.5), t(2.0)),
    D.Dirichlet(t(0.4, 1.0, 3.0)),
    D.StudentT(t(5.0), t(1.0), t(2.0)),
    D.Bernoulli(t(0.3)),
    D.Binomial(t(12.0), t(0.4)),
    D.Geometric(t(0.3)),
    D.Poisson(t(3.5)),
    D.OneHotCategorical(t(1.0, 2.0, 5.0)),
    D.Multinomial(9, t(1.0, 2.0, 5.0)),
    D.Independent(D.Normal(t(1.0, 2.0), t(1.0)), 1),
    D.MultivariateNormal(t(1.0, -1.0), vt.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=vt.float64)),
    D.MixtureSameFamily(
        D.Categorical(t(1.0, 3.0)),
        D.Independent(D.Normal(vt.tensor([[0.0, 1.0], [2.0, 5.0]], dtype=vt.float64), 1.0), 1),
    ),
]


@pytest.mark.parametrize("d", MOMENTS, ids=lambda d: type(d).__name__)
def test_samples_have_the_mean_and_variance_that_are_stated(d: Any) -> None:
    vt.manual_seed(5)
    n = 40_000
    x = d.sample((n,)).numpy()
    mean, variance = d.mean.detach().numpy(), d.variance.detach().numpy()
    assert np.all(np.abs(x.mean(0) - mean) < 4.5 * np.sqrt(variance / n))
    # The error of a variance has the size of the fourth moment.
    fourth = ((x - mean) ** 4).mean(0)
    assert np.all(np.abs(x.var(0) - variance) < 5 * np.sqrt(fourth / n))


@pytest.mark.parametrize(
    "d",
    [
        D.Bernoulli(t(0.3)),
        D.Binomial(t(6.0), t(0.35)),
        D.Categorical(t(1.0, 2.0, 5.0)),
        D.Geometric(t(0.4)),
        D.Poisson(t(2.0)),
        D.Poisson(t(30.0)),
    ],
    ids=lambda d: type(d).__name__,
)
def test_samples_come_as_often_as_their_chance(d: Any) -> None:
    vt.manual_seed(7)
    n = 40_000
    counts = np.bincount(d.sample((n,)).numpy().astype(int), minlength=2)
    values = d.enumerate_support() if d.has_enumerate_support else vt.arange(len(counts) * 1.0)
    chance = np.exp(d.log_prob(values.to(vt.float64)).numpy())
    counts = counts[: len(chance)]
    seen = n * chance >= 5
    square = (counts - n * chance)[seen] ** 2 / (n * chance)[seen]
    k = seen.sum()
    # The normal approximation of the chi-squared distribution, at 4 standard deviations.
    assert square.sum() < k + 4 * math.sqrt(2 * k)


def test_small_concentrations_end_in_one_corner_as_often_as_they_should() -> None:
    vt.manual_seed(1)
    alpha = t(0.001, 0.002, 0.0005)
    x = D.Dirichlet(alpha).sample((20_000,))
    chosen = np.bincount(x.argmax(-1).numpy(), minlength=3) / 20_000
    np.testing.assert_allclose(chosen, [2 / 7, 4 / 7, 1 / 7], atol=0.015)
    assert float(x.max(-1).values.min()) > 0.3


def test_chances_of_all_values_add_up_to_one() -> None:
    for d in (
        D.Bernoulli(logits=t(0.7)),
        D.Binomial(t(6.0), t(0.35)),
        D.Categorical(t(1.0, 2.0, 5.0)),
        D.OneHotCategorical(logits=t(1.0, 2.0, 5.0)),
    ):
        assert float(d.log_prob(d.enumerate_support()).exp().sum()) == pytest.approx(1)


@pytest.mark.parametrize("d", CONTINUOUS, ids=lambda d: type(d).__name__)
def test_densities_are_the_slope_of_the_distribution_function(d: Any) -> None:
    vt.manual_seed(11)
    x = d.sample((20,)).requires_grad_()
    (slope,) = vt.autograd.grad(d.cdf(x).sum(), x)
    np.testing.assert_allclose(slope.numpy(), d.log_prob(x).exp().detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    "d", [d for d in CONTINUOUS if not isinstance(d, (D.Gamma, D.MixtureSameFamily))], ids=lambda d: type(d).__name__
)
def test_icdf_inverts_cdf(d: Any) -> None:
    q = vt.linspace(0.02, 0.98, 13, dtype=vt.float64)
    np.testing.assert_allclose(d.cdf(d.icdf(q)).numpy(), q.numpy(), rtol=1e-9)


ENTROPY: list[Any] = [
    D.Normal(t(1.0), t(2.0)),
    D.Laplace(t(-1.0), t(0.5)),
    D.Gumbel(t(0.5), t(1.5)),
    D.Exponential(t(2.5)),
    D.Gamma(t(2.0), t(0.5)),
    D.Beta(t(2.0), t(3.0)),
    D.Chi2(t(5.0)),
    D.Dirichlet(t(2.0, 1.5, 3.0)),
    D.LogNormal(t(0.2), t(0.7)),
    D.HalfNormal(t(1.3)),
    D.StudentT(t(5.0)),
    D.Bernoulli(t(0.3)),
    D.Geometric(t(0.3)),
    D.Binomial(t(5.0), t(0.2)),
    D.Multinomial(4, t(1.0, 2.0)),
    D.MultivariateNormal(t(1.0, -1.0), vt.tensor([[2.0, 0.6], [0.6, 1.0]], dtype=vt.float64)),
]


@pytest.mark.parametrize("d", ENTROPY, ids=lambda d: type(d).__name__)
def test_entropy_is_the_mean_of_minus_log_prob(d: Any) -> None:
    vt.manual_seed(13)
    n = 20_000
    bits = -d.log_prob(d.sample((n,))).numpy()
    assert abs(bits.mean() - float(d.entropy())) < 4.5 * bits.std() / math.sqrt(n)
    assert float(d.perplexity()) == pytest.approx(math.exp(float(d.entropy())))


def test_entropy_by_the_log_normaliser_agrees_with_the_closed_form() -> None:
    for d in (D.Normal(t(1.0), t(2.0)), D.Exponential(t(2.5)), D.Gamma(t(2.0), t(0.5)), D.Bernoulli(t(0.3))):
        general = D.ExponentialFamily.entropy(d).detach().numpy()
        np.testing.assert_allclose(general, d.entropy().numpy(), rtol=1e-12)
