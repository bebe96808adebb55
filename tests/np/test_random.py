"""Random numbers have the moments of their distributions, and come again from the same seed."""

from __future__ import annotations

import numpy
import pytest

import votive

np = votive.np
N = 20_000
# Name, arguments, and the mean and variance that NumPy's documentation states.
MOMENTS = [
    ("random", (), 0.5, 1 / 12),
    ("uniform", (-1, 3), 1.0, 16 / 12),
    ("normal", (2, 3), 2.0, 9.0),
    ("standard_normal", (), 0.0, 1.0),
    ("exponential", (2.0,), 2.0, 4.0),
    ("standard_exponential", (), 1.0, 1.0),
    ("gamma", (3.0, 2.0), 6.0, 12.0),
    ("standard_gamma", (0.5,), 0.5, 0.5),
    ("beta", (2.0, 3.0), 0.4, 0.04),
    ("chisquare", (3,), 3.0, 6.0),
    ("noncentral_chisquare", (3, 2), 5.0, 14.0),
    ("f", (5, 12), 1.2, 1.08),
    ("noncentral_f", (5, 12, 1), 1.44, None),
    ("standard_t", (6,), 0.0, 1.5),
    ("pareto", (5.0,), 0.25, 5 / 48),
    ("power", (3.0,), 0.75, 3 / 80),
    ("weibull", (2.0,), 0.886227, 0.214602),
    ("rayleigh", (2.0,), 2.506628, 1.716815),
    ("laplace", (1.0, 2.0), 1.0, 8.0),
    ("logistic", (1.0, 1.0), 1.0, 3.289868),
    ("gumbel", (0.0, 1.0), 0.577216, 1.644934),
    ("lognormal", (0.0, 0.5), 1.133148, 0.364696),
    ("triangular", (0, 1, 3), 4 / 3, 7 / 18),
    ("wald", (1.0, 2.0), 1.0, 0.5),
    ("vonmises", (0.5, 4.0), 0.5, None),
    ("poisson", (3.5,), 3.5, 3.5),
    ("binomial", (10, 0.3), 3.0, 2.1),
    ("negative_binomial", (4, 0.5), 4.0, 8.0),
    ("geometric", (0.25,), 4.0, 12.0),
    ("logseries", (0.6,), 1.637035, 1.412707),
    ("zipf", (4.5,), 1.068, None),
    ("hypergeometric", (15, 15, 10), 5.0, 1.724),
    ("integers", (0, 10), 4.5, 8.25),
]


@pytest.mark.parametrize(("name", "args", "mean", "variance"), MOMENTS, ids=lambda v: v if isinstance(v, str) else "")
def test_distributions_have_their_moments(name: str, args: tuple[float, ...], mean: float, variance: float) -> None:
    first, again = (getattr(np.random.default_rng(3), name)(*args, size=N) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.dtype == getattr(numpy.random.default_rng(3), name)(*args, size=2).dtype
    spread = float(first.std())
    assert abs(float(first.mean()) - mean) < 5 * spread / N**0.5 + 1e-3
    if variance is not None:
        assert abs(float(first.var()) - variance) < 0.12 * variance


def test_vectors_have_their_means() -> None:
    rng = np.random.default_rng(0)
    assert np.allclose(rng.dirichlet([1, 2, 5], 5000).mean(0), [0.125, 0.25, 0.625], atol=0.02)
    counts = rng.multinomial(20, [0.2, 0.3, 0.5], 2000)
    assert (counts.sum(-1) == 20).all()
    assert np.allclose(counts.mean(0), [4, 6, 10], atol=0.3)
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    draws = rng.multivariate_normal([1, -1], cov, 8000)
    assert np.allclose(np.cov(draws.T), cov, atol=0.15)
    assert rng.multivariate_hypergeometric([5, 5], 4, 3).shape == (3, 2)


def test_choices_and_orders() -> None:
    rng = np.random.default_rng(1)
    assert sorted(rng.permutation(6).tolist()) == list(range(6))
    assert sorted(rng.choice(6, 6, replace=False).tolist()) == list(range(6))
    assert set(rng.choice([4, 9], 50, p=[1.0, 0.0]).tolist()) == {4}
    assert sorted(rng.choice(3, 2, replace=False, p=[0.5, 0.0, 0.5]).tolist()) == [0, 2]
    x = np.arange(8)
    rng.shuffle(x)
    assert sorted(x.tolist()) == list(range(8))
    rows = rng.permuted(np.arange(6).reshape(2, 3), axis=1)
    assert np.array_equal(np.sort(rows, 1), np.arange(6).reshape(2, 3))
    assert len(rng.bytes(5)) == 5
    with pytest.raises(ValueError, match="larger sample"):
        rng.choice(3, 5, replace=False)
    for call in (
        lambda: rng.normal(0, -1),
        lambda: rng.poisson(-1),
        lambda: rng.integers(5, 5),
        lambda: rng.beta(0, 1),
    ):
        with pytest.raises(ValueError, match=r"<|>"):
            call()


def test_the_older_interface_has_one_stream() -> None:
    np.random.seed(4)
    state = np.random.get_state()
    a, b, c = np.random.rand(2, 2), np.random.randn(3), np.random.randint(0, 5, 4)
    np.random.set_state(state)
    assert np.array_equal(np.random.rand(2, 2), a)
    assert (b.shape, c.dtype) == ((3,), numpy.dtype(int))
    children = np.random.default_rng(0).spawn(2)
    assert float(children[0].random()) != float(children[1].random())


def test_samples_carry_gradients_to_their_parameters() -> None:
    scale = np.asarray(votive.ones(3, dtype=votive.float64, requires_grad=True))
    np.random.default_rng(0).normal(0, scale).sum().backward()
    assert scale.grad is not None
    assert bool((scale.grad != 0).all())
