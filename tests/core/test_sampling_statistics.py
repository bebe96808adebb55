"""Samples have the moments, independence and distribution that they should."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from votive.backends.common import sampling

N = 200_000


def assert_moments(x: np.ndarray, mean: float, var: float, kurtosis: float = 3.0) -> None:
    """Mean and variance within five standard errors; `kurtosis` is E[(x-mean)^4] / var^2."""
    x = x.astype(np.float64)
    assert abs(x.mean() - mean) < 5 * math.sqrt(var / x.size)
    assert abs(x.var() - var) < 5 * var * math.sqrt((kurtosis - 1) / x.size)


# mean, variance, kurtosis of each distribution, from its textbook formulas.
MOMENTS = {
    "uniform32": (lambda: sampling.uniform(1, 0, (N,), -1, 3), 1, 16 / 12, 1.8),
    "uniform64": (lambda: sampling.uniform(2, 0, (N,), dtype=np.float64), 0.5, 1 / 12, 1.8),
    "normal32": (lambda: sampling.normal(3, 0, (N,)), 0, 1, 3),
    "normal64": (lambda: sampling.normal(4, 0, (N,), 5, 2, np.float64), 5, 4, 3),
    "exponential": (lambda: sampling.exponential(5, 0, (N,), 2.0), 0.5, 0.25, 9),
    "bernoulli": (lambda: sampling.bernoulli(6, 0, (N,), 0.2), 0.2, 0.16, 3.25),
    "randint": (lambda: sampling.randint(7, 0, (N,), 0, 7), 3, 4, 1.75),
    "geometric": (lambda: sampling.geometric(8, 0, (N,), 0.25), 4, 12, 9.0834),
    "log_normal": (
        lambda: sampling.log_normal(9, 0, (N,), 0, 0.25, np.float64),
        math.exp(0.03125),
        (math.exp(0.0625) - 1) * math.exp(0.0625),
        4.2,
    ),
    **{
        f"poisson{m}": (lambda m=m: sampling.poisson(10, 0, (N // 4,), m, np.float64), m, m, 3 + 1 / m)
        for m in (0.3, 9.9, 10.0, 45.0, 1e6, 1e16)
    },
    **{
        f"binomial{n}-{p}": (
            lambda n=n, p=p: sampling.binomial(11, 0, (N // 4,), n, p, np.float64),
            n * p,
            n * p * (1 - p),
            3 + (1 - 6 * p * (1 - p)) / (n * p * (1 - p)),
        )
        for n, p in ((5, 0.3), (40, 0.25), (40, 0.8), (1000, 0.5), (10**9, 0.01))
    },
    **{
        f"gamma{a}": (lambda a=a: sampling.gamma(12, 0, (N // 4,), a, np.float64), a, a, 3 + 6 / a)
        for a in (0.1, 0.9, 1.0, 3.5, 1e4, 1e14)
    },
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_right(name):
    draw, mean, var, kurtosis = MOMENTS[name]
    assert_moments(draw(), mean, var, kurtosis)


def test_neighbours_are_uncorrelated():
    for x in (sampling.normal(13, 0, (N,)), sampling.uniform(14, 0, (N,), dtype=np.float64)):
        for lag in (1, 2, 4):
            assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 5 / math.sqrt(N)


def test_seeds_and_counters_give_unrelated_streams():
    base = sampling.normal(1, 0, (N,))
    for other in (sampling.normal(2, 0, (N,)), sampling.normal(1, N, (N,))):
        assert abs(np.corrcoef(base, other)[0, 1]) < 5 / math.sqrt(N)


def test_randint_favours_no_value_of_a_large_range():
    # With 32 bits, a third of the values of 0 .. 3 * 2**30 - 1 would come twice as often.
    third = sampling.randint(15, 0, (N,), 0, 3 * 2**30) // 2**30
    assert (np.abs(np.bincount(third) - N / 3) < 5 * math.sqrt(N * 2 / 9)).all()


def test_all_permutations_are_equally_likely():
    n = 12_000
    seen = Counter(tuple(sampling.randperm(16, 2 * i, 3).tolist()) for i in range(n))
    assert len(seen) == 6
    assert sum((c - n / 6) ** 2 / (n / 6) for c in seen.values()) < 25.7  # chi2(5), 1e-4


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_follows_the_weights(replacement):
    weights = np.array([1.0, 2.0, 0.0, 5.0])
    p = weights / 8
    got = sampling.multinomial(17, 0, np.tile(weights, (N // 8, 1)), 2, replacement)
    rows = len(got)
    for i in (0, 1, 3):
        for j in (0, 1, 3):
            # Without replacement the second is drawn from what the first left.
            want = p[i] * (p[j] if replacement else (i != j) * p[j] / (1 - p[i]))
            share = ((got[:, 0] == i) & (got[:, 1] == j)).mean()
            assert abs(share - want) <= 5 * math.sqrt(want * (1 - want) / rows)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_continuous_distributions_pass_kolmogorov_smirnov(dtype):
    stats = pytest.importorskip("scipy.stats")
    n = (20_000,)
    for x, law in (
        (sampling.uniform(20, 0, n, dtype=dtype), stats.uniform()),
        (sampling.normal(21, 0, n, dtype=dtype), stats.norm()),
        (sampling.exponential(22, 0, n, 2.0, dtype), stats.expon(scale=0.5)),
        (sampling.cauchy(23, 0, n, 1.0, 2.0, dtype), stats.cauchy(1, 2)),
        (sampling.log_normal(24, 0, n, 0.0, 1.0, dtype), stats.lognorm(1)),
        (sampling.gamma(25, 0, n, 0.3, dtype), stats.gamma(0.3)),
        (sampling.gamma(26, 0, n, 7.0, dtype), stats.gamma(7.0)),
    ):
        assert stats.kstest(x.astype(np.float64), law.cdf).pvalue > 1e-4


@pytest.mark.parity
def test_discrete_distributions_pass_chi_square():
    stats = pytest.importorskip("scipy.stats")
    n = 40_000
    for x, law in (
        (sampling.poisson(30, 0, (n,), 4.0), stats.poisson(4.0)),
        (sampling.poisson(31, 0, (n,), 10.0), stats.poisson(10.0)),
        (sampling.poisson(32, 0, (n,), 60.0), stats.poisson(60.0)),
        (sampling.binomial(33, 0, (n,), 12, 0.4), stats.binom(12, 0.4)),
        (sampling.binomial(34, 0, (n,), 50, 0.3), stats.binom(50, 0.3)),
        (sampling.binomial(35, 0, (n,), 30, 0.9), stats.binom(30, 0.9)),
        (sampling.geometric(36, 0, (n,), 0.3), stats.geom(0.3)),
    ):
        values = np.arange(0, int(x.max()) + 2)
        expected = n * law.pmf(values)
        observed = np.bincount(x.astype(int), minlength=len(values))
        big = expected >= 10
        rest = n - expected[big].sum(), n - observed[big].sum()
        chi2 = ((observed - expected)[big] ** 2 / expected[big]).sum()
        chi2 += (rest[1] - rest[0]) ** 2 / rest[0]
        assert stats.chi2(big.sum()).sf(chi2) > 1e-4
