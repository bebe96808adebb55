"""Divergences are what their definition says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D

from .values import t

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
