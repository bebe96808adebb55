"""Gradients of samples fit the gradients of moments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D
from votive.backends.cpu.reference import gamma_sampling
from votive.ops.registry import F

from .values import t


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
        transposed = op(alpha.t().contiguous().t())
        np.testing.assert_array_equal(plain.numpy(), transposed.numpy())


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
