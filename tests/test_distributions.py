"""Distributions by themselves: samples fit densities, gradients fit moments, errors are raised.

The comparison with torch is in test_distributions_parity.py.
"""

from __future__ import annotations

import doctest
import inspect
import math
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D
from votive.backends.cpu.reference import gamma_sampling
from votive.ops.registry import F


def t(*values: float, grad: bool = False) -> vt.Tensor:
    data = values[0] if len(values) == 1 else list(values)
    return vt.tensor(data, dtype=vt.float64, requires_grad=grad)


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


# --- gradients of samples -------------------------------------------------------------------------


def test_gamma_samples_move_so_that_their_rank_stays() -> None:
    rng = np.random.default_rng(0)
    alpha = np.exp(rng.uniform(-2, 6, 200))
    x = rng.gamma(alpha)
    a, value = vt.from_numpy(alpha), vt.from_numpy(x)
    step = 1e-4 * a
    by_alpha = (vt.igamma(a + step, value) - vt.igamma(a - step, value)) / (2 * step)
    density = ((a - 1) * value.log() - value - a.lgamma()).exp()
    slope = F._standard_gamma_grad(a, value)
    np.testing.assert_allclose(slope.numpy(), (-by_alpha / density).numpy(), rtol=2e-6)


def test_the_slope_of_gamma_samples_that_are_tiny_or_of_large_shape() -> None:
    # P(a, x) near x = 0 is x^a / Gamma(a + 1), so that dx/da = x (digamma(a + 1) - log x) / a.
    a = np.array([0.001, 0.5, 1.0, 3.0])
    x = np.array([1e-200, 1e-30, 1e-30, 1e-30])
    want = x * (vt.digamma(vt.from_numpy(a + 1)).numpy() - np.log(x)) / a
    np.testing.assert_allclose(gamma_sampling.standard_gamma_grad(a, x), want, rtol=1e-12)
    # For large shapes a sample is a series in z and sqrt(a): Cornish and Fisher.
    a, z = np.full(3, 1e6), np.array([-2.0, 0.5, 3.0])
    third = (z**3 - 7 * z) / 36
    x = a + z * np.sqrt(a) + (z * z - 1) / 3 + third / np.sqrt(a)
    want = 1 + z / (2 * np.sqrt(a)) - third / (2 * a**1.5)
    np.testing.assert_allclose(gamma_sampling.standard_gamma_grad(a, x), want, rtol=1e-11)


def test_beta_samples_move_as_powers_of_uniform_ones_do() -> None:
    # With b = 1 the sample is u^(1 / a), so that dx/da = -x log(x) / a.
    a = np.array([[0.01], [0.3], [1.0], [20.0], [4000.0]])
    u = np.array([1e-3, 0.2, 0.5, 0.9, 0.9999])
    x = np.clip(u ** (1 / a), 1e-300, 1 - 1e-12)
    got = gamma_sampling.dirichlet_grad(x, a + 0 * x, a + 1 + 0 * x)
    np.testing.assert_allclose(got * (1 - x), -x * np.log(x) / a, rtol=1e-9)


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (40.0, 9.0), (1.5, 30.0)])
def test_the_mean_slope_of_beta_samples_is_the_slope_of_the_mean(a: float, b: float) -> None:
    points, weights = np.polynomial.legendre.leggauss(200)
    x, dx = (points + 1) / 2, weights / 2
    d = D.Beta(t(a), t(b))
    density = d.log_prob(vt.from_numpy(x)).exp().numpy()
    slope = gamma_sampling.dirichlet_grad(x, a + 0 * x, a + b + 0 * x) * (1 - x)
    for power in (1, 2, 3):
        # E x^k is the product of (a + i) / (a + b + i).
        i = np.arange(power)
        mean = np.prod((a + i) / (a + b + i))
        want = mean * np.sum(1 / (a + i) - 1 / (a + b + i))
        got = np.sum(dx * density * power * x ** (power - 1) * slope)
        assert got == pytest.approx(want, rel=1e-8)


def test_second_derivatives_of_gamma_samples_are_refused() -> None:
    a = vt.ones(3, requires_grad=True)
    (g,) = vt.autograd.grad(F._standard_gamma(a).sum(), a, create_graph=True)
    with pytest.raises(NotImplementedError):
        vt.autograd.grad(g.sum(), a)


def test_gamma_and_dirichlet_samples_of_odd_inputs() -> None:
    assert F._standard_gamma(vt.zeros(0, 3)).shape == (0, 3)
    assert F._sample_dirichlet(vt.zeros(3, 0)).shape == (3, 0)
    one = vt.ones(4, 1, requires_grad=True)
    x = F._sample_dirichlet(one)
    (g,) = vt.autograd.grad(x.sum(), one)
    assert not g.numpy().any()
    np.testing.assert_allclose(x.detach().numpy(), 1, rtol=1e-6)
    with pytest.raises(NotImplementedError):
        F._standard_gamma(vt.ones(2, dtype=vt.int64))
    with pytest.raises(RuntimeError):
        F._sample_dirichlet(vt.tensor(1.0))
    # The order of drawing is that of the elements, not of memory.
    alpha = vt.rand(3, 4) + 0.5
    for op in (F._standard_gamma, F._sample_dirichlet):
        vt.manual_seed(0)
        plain = op(alpha)
        vt.manual_seed(0)
        turned = op(alpha.t().contiguous().t())
        np.testing.assert_array_equal(plain.numpy(), turned.numpy())


REPARAMETERISED: dict[str, tuple[Any, tuple[float, ...]]] = {
    "Normal": (D.Normal, (0.5, 1.5)),
    "Laplace": (D.Laplace, (0.5, 1.5)),
    "Gumbel": (D.Gumbel, (0.5, 1.5)),
    "Uniform": (D.Uniform, (-1.0, 2.0)),
    "Exponential": (D.Exponential, (1.5,)),
    "Gamma": (D.Gamma, (0.7, 2.0)),
    "Beta": (D.Beta, (0.6, 1.7)),
    "Chi2": (D.Chi2, (3.0,)),
    "LogNormal": (D.LogNormal, (0.1, 0.4)),
    "HalfNormal": (D.HalfNormal, (1.3,)),
    "StudentT": (D.StudentT, (6.0, 0.3, 1.2)),
    "Dirichlet": (lambda *a: D.Dirichlet(vt.stack(a)), (0.5, 1.2, 3.0)),
    "MultivariateNormal": (
        lambda a, b, c: D.MultivariateNormal(vt.stack([a, b]), vt.eye(2, dtype=vt.float64) * (c * c)),
        (0.5, -0.5, 1.3),
    ),
}


@pytest.mark.parametrize("name", REPARAMETERISED)
def test_gradients_of_samples_have_the_mean_of_the_gradient_of_moments(name: str) -> None:
    make, values = REPARAMETERISED[name]
    vt.manual_seed(17)
    params = [t(v, grad=True) for v in values]
    d = make(*params)
    n, weights = 20_000, vt.arange(1.0, 1.0 + max(1, math.prod(d.event_shape)), dtype=vt.float64)

    def statistic(first: Any, second: Any) -> Any:
        return (weights * (first + second)).sum()

    # The mean of x + x^2, whose gradient both ways must agree within the noise of blocks.
    exact = statistic(d.mean, d.variance + d.mean**2)
    want = [float(g) for g in vt.autograd.grad(exact, params, retain_graph=True)]
    blocks = []
    for _ in range(10):
        x = d.rsample((n // 10,))
        got = vt.autograd.grad(statistic(x.mean(0), (x * x).mean(0)), params, retain_graph=True)
        blocks.append([float(g) for g in got])
    mean, error = np.mean(blocks, 0), np.std(blocks, 0) / 3
    np.testing.assert_array_less(np.abs(mean - want), 5 * error + 1e-9)


@pytest.mark.parametrize("name", ["Normal", "Laplace", "Gumbel", "Uniform", "Exponential"])
def test_samples_of_one_seed_move_along_their_gradient(name: str) -> None:
    make, values = REPARAMETERISED[name]

    def draw(shift: float) -> Any:
        vt.manual_seed(2)
        params = [t(v + shift, grad=True) for v in values]
        return params, make(*params).rsample((50,))

    params, x = draw(0.0)
    slopes = vt.autograd.grad(x.sum(), params)
    (_, above), (_, below) = draw(1e-5), draw(-1e-5)
    want = float((above - below).sum()) / 2e-5
    assert sum(float(g) for g in slopes) == pytest.approx(want, rel=1e-6)


def test_samples_carry_a_gradient_only_through_rsample() -> None:
    loc = t(0.0, grad=True)
    d = D.Normal(loc, t(1.0))
    assert d.rsample().requires_grad
    assert not d.sample().requires_grad
    for other in (D.Bernoulli(t(0.5)), D.Poisson(t(1.0)), D.Categorical(t(1.0, 1.0))):
        with pytest.raises(NotImplementedError):
            other.rsample()
    through = D.OneHotCategoricalStraightThrough(logits=vt.zeros(3, requires_grad=True))
    assert through.rsample((2,)).requires_grad
    np.testing.assert_allclose(through.rsample((2,)).sum(-1).detach().numpy(), 1, rtol=1e-6)


# --- divergence -----------------------------------------------------------------------------------


PAIRS: list[tuple[Any, Any]] = [
    (D.Normal(t(0.3), t(1.2)), D.Normal(t(-0.5), t(0.8))),
    (D.Normal(t(0.3), t(1.2)), D.Laplace(t(-0.5), t(0.8))),
    (D.Normal(t(0.3), t(0.7)), D.Gumbel(t(-0.5), t(1.8))),
    (D.Laplace(t(0.3), t(0.7)), D.Laplace(t(-0.5), t(1.8))),
    (D.Laplace(t(0.3), t(0.7)), D.Normal(t(-0.5), t(1.8))),
    (D.Gumbel(t(0.3), t(0.7)), D.Gumbel(t(-0.5), t(1.8))),
    (D.Gumbel(t(0.3), t(0.7)), D.Normal(t(-0.5), t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Uniform(t(-0.5), t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Beta(t(2.5), t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Gamma(t(2.5), t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Exponential(t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Gumbel(t(0.4), t(1.8))),
    (D.Uniform(t(0.2), t(0.7)), D.Normal(t(0.4), t(1.8))),
    (D.Exponential(t(1.5)), D.Exponential(t(0.7))),
    (D.Exponential(t(1.5)), D.Gamma(t(1.7), t(2.0))),
    (D.Exponential(t(1.5)), D.Gumbel(t(0.4), t(1.8))),
    (D.Exponential(t(1.5)), D.Normal(t(0.4), t(1.8))),
    (D.Gamma(t(2.3), t(1.5)), D.Gamma(t(1.7), t(2.0))),
    (D.Gamma(t(2.3), t(1.5)), D.Exponential(t(0.9))),
    (D.Gamma(t(2.3), t(1.5)), D.Gumbel(t(0.4), t(1.8))),
    (D.Gamma(t(2.3), t(1.5)), D.Normal(t(0.4), t(1.8))),
    (D.Beta(t(2.3), t(1.5)), D.Beta(t(1.7), t(2.0))),
    (D.Beta(t(2.3), t(1.5)), D.Gamma(t(1.7), t(2.0))),
    (D.Beta(t(2.3), t(1.5)), D.Exponential(t(0.9))),
    (D.Beta(t(2.3), t(1.5)), D.Normal(t(0.4), t(1.8))),
    (D.Beta(t(2.3), t(1.5)), D.Uniform(t(-0.4), t(1.8))),
    (D.Cauchy(t(0.3), t(0.7)), D.Cauchy(t(-0.5), t(1.8))),
    (D.HalfNormal(t(0.7)), D.HalfNormal(t(1.8))),
    (D.LogNormal(t(0.3), t(0.7)), D.LogNormal(t(-0.5), t(1.8))),
]


def between(d: Any) -> tuple[float, float]:
    """The support, cut where next to nothing lies beyond."""
    if isinstance(d, D.Cauchy):
        return -1e7, 1e7
    if isinstance(d, D.LogNormal):
        return 0.0, 60.0
    if isinstance(d, D.Uniform):
        return float(d.low), float(d.high)
    if isinstance(d, D.Beta):
        return 0.0, 1.0
    low = 0.0 if isinstance(d, (D.Exponential, D.Gamma, D.HalfNormal)) else -25.0
    return low, 40.0


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, q in PAIRS])
def test_divergence_is_the_integral_of_p_log_of_p_over_q(p: Any, q: Any) -> None:
    low, high = between(p)
    kinks = [float(d.loc) for d in (p, q) if isinstance(d, D.Laplace)]
    points, weights = np.polynomial.legendre.leggauss(1000)
    if isinstance(p, D.Cauchy):
        reach = math.asinh(high)
        x, dx = np.sinh(reach * points), reach * np.cosh(reach * points) * weights
    else:
        # A sine, so that points are dense where a density may be infinite or bend: at the ends.
        s, ends = points * math.pi / 2, [low, *sorted(kinks), high]
        widths = np.diff(ends)[:, None] / 2
        x = (np.array(ends[:-1])[:, None] + widths * (1 + np.sin(s))).reshape(-1)
        dx = (widths * np.cos(s) * weights * math.pi / 2).reshape(-1)
    value = vt.from_numpy(x)
    log_p, log_q = p.log_prob(value).numpy(), q.log_prob(value).numpy()
    want = np.sum(np.exp(log_p) * (log_p - log_q) * dx)
    assert float(D.kl_divergence(p, q)) == pytest.approx(want, rel=1e-5)


def test_divergence_of_discrete_distributions_is_the_sum_over_their_values() -> None:
    k = vt.arange(80.0, dtype=vt.float64)
    for p, q, values in (
        (D.Bernoulli(t(0.3)), D.Bernoulli(t(0.6)), k[:2]),
        (D.Bernoulli(t(0.3)), D.Poisson(t(0.6)), k[:2]),
        (D.Binomial(t(7.0), t(0.3)), D.Binomial(t(7.0), t(0.6)), k[:8]),
        (D.Poisson(t(3.0)), D.Poisson(t(4.0)), k),
        (D.Geometric(t(0.5)), D.Geometric(t(0.3)), k),
        (D.Categorical(t(1.0, 2.0)), D.Categorical(t(3.0, 2.0)), k[:2]),
    ):
        gap = p.log_prob(values) - q.log_prob(values)
        want = float((p.log_prob(values).exp() * gap).sum())
        assert float(D.kl_divergence(p, q)) == pytest.approx(want, rel=1e-9)


def test_divergence_is_infinite_where_q_has_no_room() -> None:
    for p, q in (
        (D.Normal(0.0, 1.0), D.Exponential(1.0)),
        (D.Exponential(1.0), D.Uniform(0.0, 9.0)),
        (D.Uniform(0.0, 2.0), D.Uniform(0.0, 1.0)),
        (D.Uniform(-1.0, 1.0), D.Exponential(1.0)),
        (D.Uniform(0.5, 1.5), D.Beta(1.0, 2.0)),
        (D.Beta(1.0, 1.0), D.Uniform(0.0, 0.5)),
        (D.Bernoulli(0.5), D.Bernoulli(0.0)),
        (D.Poisson(1.0), D.Bernoulli(0.5)),
        (D.Categorical(t(1.0, 1.0)), D.Categorical(t(1.0, 0.0))),
    ):
        assert float(D.kl_divergence(p, q)) == math.inf
    assert float(D.kl_divergence(D.Bernoulli(0.0), D.Bernoulli(0.0))) == 0
    same = D.kl_divergence(D.Categorical(t(0.0, 1.0)), D.Categorical(t(0.0, 1.0)))
    assert float(same) == 0


def test_divergence_finds_the_formula_of_the_nearest_class() -> None:
    class Special(D.Normal):
        pass

    p, q = Special(0.0, 1.0), D.Normal(1.0, 1.0)
    assert float(D.kl_divergence(p, q)) == 0.5

    @D.register_kl(Special, D.Normal)
    def formula(p: Any, q: Any) -> Any:
        return vt.tensor(7.0)

    assert float(D.kl_divergence(p, q)) == 7
    D.register_kl(D.Normal, Special)(lambda p, q: vt.tensor(8.0))
    with pytest.warns(RuntimeWarning, match="Ambiguous"):
        D.kl_divergence(p, Special(0.0, 1.0))
    with pytest.raises(NotImplementedError):
        D.kl_divergence(D.StudentT(3.0), D.StudentT(3.0))
    with pytest.raises(NotImplementedError):
        D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))


# --- shapes, errors, forms ------------------------------------------------------------------------


def test_expand_shares_memory_and_keeps_validation() -> None:
    d = D.Normal(vt.zeros(3), vt.ones(3), validate_args=False)
    wide = d.expand((2, 3))
    assert wide.batch_shape == (2, 3)
    assert wide.loc.data_ptr() == d.loc.data_ptr()
    assert wide._validate_args is False
    gamma = D.Chi2(vt.ones(3)).expand((2, 3))
    assert gamma.df.shape == (2, 3)
    assert gamma.sample((4,)).shape == (4, 2, 3)


def test_a_subclass_with_its_own_init_must_bring_its_own_expand() -> None:
    class Tempered(D.Normal):
        def __init__(self, temperature: float) -> None:
            self.temperature = temperature
            super().__init__(vt.zeros(2), temperature)

    with pytest.raises(NotImplementedError):
        Tempered(2.0).expand((3, 2))

    class Kind(D.Normal):
        def __init__(self, temperature: float) -> None:
            self.temperature = temperature
            super().__init__(vt.zeros(2), temperature)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Kind, _instance)
            new.temperature = self.temperature
            return super().expand(batch_shape, _instance=new)

    assert Kind(2.0).expand((3, 2)).sample().shape == (3, 2)


def test_validation_can_be_switched_off() -> None:
    D.Normal(0.0, -1.0, validate_args=False)
    try:
        D.Distribution.set_default_validate_args(False)
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="scale"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="set_default"):
        D.Distribution.set_default_validate_args(2)  # type: ignore[arg-type]


def test_wrong_parameters_and_values_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"scale .*GreaterThan\(lower_bound=0.0\)"):
        D.Normal(vt.zeros(2), vt.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli(0.5, 0.5)
    with pytest.raises(ValueError, match="numbers or tensors"):
        D.Normal([0.0], 1.0)
    with pytest.raises(ValueError, match="support"):
        D.Exponential(1.0).log_prob(vt.tensor(-1.0))
    with pytest.raises(ValueError, match="must be a Tensor"):
        D.Normal(0.0, 1.0).log_prob(0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="event_shape"):
        D.Dirichlet(vt.ones(3)).log_prob(vt.ones(2) / 2)
    with pytest.raises(ValueError, match="broadcastable"):
        D.Normal(vt.zeros(3), 1.0).log_prob(vt.zeros(2))
    with pytest.raises(ValueError, match="positive"):
        D.Geometric(vt.tensor([0.5, 0.0]))


def test_a_lazy_parameter_is_made_once_and_keeps_its_gradient() -> None:
    logits = vt.zeros(3, requires_grad=True)
    d = D.Bernoulli(logits=logits)
    with vt.no_grad():
        probs = d.probs
    assert probs.requires_grad
    assert d.probs is probs


def test_a_cached_transform_returns_the_very_tensors() -> None:
    transform = D.TanhTransform(cache_size=1)
    x = vt.tensor([30.0])
    y = transform(x)
    assert transform.inv(y) is x
    assert transform(x) is y
    with pytest.raises(ValueError, match="cache_size"):
        D.ExpTransform(cache_size=2)


@pytest.mark.parametrize(
    "transform",
    [
        D.ExpTransform(),
        D.PowerTransform(t(2.0)),
        D.SigmoidTransform(),
        D.SoftplusTransform(),
        D.TanhTransform(),
        D.AffineTransform(t(1.0), t(-3.0)),
        D.CumulativeDistributionTransform(D.Normal(t(0.3), t(1.4))),
        D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.TanhTransform()]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_transform_stretches_by_its_slope_and_is_undone_by_its_inverse(transform: Any) -> None:
    x = vt.linspace(0.1, 1.3, 7, dtype=vt.float64).requires_grad_()
    y = transform(x)
    (slope,) = vt.autograd.grad(y.sum(), x, retain_graph=True)
    got = transform.log_abs_det_jacobian(x, y).detach().numpy()
    np.testing.assert_allclose(got, np.log(np.abs(slope.numpy())), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(transform.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-9)
    assert transform.inv.inv is transform
    turned = transform.inv.log_abs_det_jacobian(y, x).detach().numpy()
    np.testing.assert_allclose(turned, -got, rtol=1e-9, atol=1e-12)


def test_stick_breaking_stretches_by_its_determinant() -> None:
    transform = D.StickBreakingTransform()
    x = vt.tensor([0.3, -0.7, 1.1], dtype=vt.float64)
    jacobian = vt.autograd.functional.jacobian(lambda v: transform(v)[:-1], x)
    want = float(vt.linalg.slogdet(jacobian)[1])
    y = transform(x)
    assert float(transform.log_abs_det_jacobian(x, y)) == pytest.approx(want)
    assert float(y.sum()) == pytest.approx(1)
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)


def test_every_example_of_the_package_runs_as_printed() -> None:
    found = {n: v for n, v in vars(D).items() if inspect.isclass(v) or inspect.isfunction(v)}
    found["Constraint"] = D.constraints.Constraint
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    assert len(found) > 40
    for name, value in found.items():
        doc = inspect.cleandoc(value.__doc__ or "")
        test = doctest.DocTestParser().get_doctest(doc, {"votive": vt}, name, None, 0)
        assert test.examples, f"{name} has no example"
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=options, verbose=False)
        runner.run(test, out=report.append)
        assert runner.failures == 0, "".join(report)
