"""Distributions of powers, matrices, angles and numbers in between: the same as torch's; samples fit their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
import votive.distributions as D
from votive.core.words import words

SHARES = [0.2, 0.3, 0.5]
HEIGHTS = [0.0] * 4, [1.0, 2.0, 1.0, 1.0], [0.2, -0.3, 0.0, 0.8]
CORRELATION = np.array([[1, 0.3, 0.1], [0.3, 1, -0.2], [0.1, -0.2, 1]])
PD = np.array([[2.0, 0.3], [0.3, 1.0]])
# A distribution by name, made with a library's tensors, and values to ask it for.
CASES: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "Pareto": (lambda d, t: d.Pareto(t([1.0, 2.0]), t([3.0, 0.5])), [1.5, 4.0]),
    "GeneralizedPareto": (lambda d, t: d.GeneralizedPareto(t(HEIGHTS[0]), t(HEIGHTS[1]), t(HEIGHTS[2])), [0.5] * 4),
    "Weibull": (lambda d, t: d.Weibull(t([1.0, 2.0]), t([1.5, 0.7])), [0.5, 3.0]),
    "Kumaraswamy": (lambda d, t: d.Kumaraswamy(t([1.5, 2.0]), t([2.0, 3.0])), [0.2, 0.9]),
    "InverseGamma": (lambda d, t: d.InverseGamma(t([3.0, 1.5]), t([2.0, 1.0])), [0.2, 2.0]),
    "FisherSnedecor": (lambda d, t: d.FisherSnedecor(t([2.0, 5.0]), t([3.0, 6.0])), [0.5, 2.0]),
    "NegativeBinomial": (lambda d, t: d.NegativeBinomial(t([3.0, 5.5]), t([0.3, 0.8])), [2.0, 7.0]),
    "NegativeBinomial logits": (lambda d, t: d.NegativeBinomial(t([3.0, 0.0]), logits=t([0.3, -0.8])), [2.0, 0.0]),
    "VonMises": (lambda d, t: d.VonMises(t([0.3, -2.0]), t([0.5, 8.0])), [1.0, 3.0]),
    "ContinuousBernoulli": (lambda d, t: d.ContinuousBernoulli(t([0.2, 0.5, 0.9])), [0.1, 0.5, 0.7]),
    "ContinuousBernoulli logits": (lambda d, t: d.ContinuousBernoulli(logits=t([-2.0, 0.0, 3.0])), [0.1, 0.5, 0.7]),
    "RelaxedBernoulli": (lambda d, t: d.RelaxedBernoulli(t(0.7), t([0.2, 0.6])), [0.3, 0.8]),
    "RelaxedOneHotCategorical": (lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t([SHARES])), [SHARES]),
    "LogisticNormal": (lambda d, t: d.LogisticNormal(t([0.2, -0.3]), t([1.0, 0.5])), [0.3, 0.3, 0.4]),
    "LKJCholesky": (lambda d, t: d.LKJCholesky(3, t([0.5, 2.0])), np.linalg.cholesky(CORRELATION)),
    "Wishart": (lambda d, t: d.Wishart(t(3.5), t(PD)), PD * 2),
    "Wishart precision": (lambda d, t: d.Wishart(t([3.5, 5.0]), precision_matrix=t(PD)), PD * 2),
    "Wishart factor": (lambda d, t: d.Wishart(t(3.5), scale_tril=t(np.linalg.cholesky(PD))), PD * 2),
    "LowRank": (lambda d, t: d.LowRankMultivariateNormal(t(SHARES), t([[1.0], [0.5], [-0.2]]), t(SHARES)), SHARES),
}  # fmt: skip
ASKED = words(
    "mean mode variance stddev batch_shape event_shape support has_rsample scale_tril covariance_matrix "
    "precision_matrix probs logits temperature concentration rate"
)


def outcome(run: Callable[[], Any]) -> Any:
    try:
        found = run()
    except (NotImplementedError, AttributeError) as e:
        return type(e).__name__
    if isinstance(found, tuple):
        return tuple(found)
    if hasattr(found, "detach"):
        return found.detach().numpy()
    return str(found).replace("votive", "torch")


def asked(lib: Any, dists: Any, name: str) -> dict[str, Any]:
    make, value = CASES[name]

    dtype = "f4" if name == "GeneralizedPareto" else "f8"  # in which alone torch's works

    def t(x: Any) -> Any:
        return lib.tensor(np.asarray(x, dtype=dtype))

    d = make(dists, t)
    given = t(value)
    wide = d.expand((2, *d.batch_shape))
    out = {key: outcome(lambda key=key: getattr(d, key)) for key in ASKED}
    out.update({f"wide {key}": outcome(lambda key=key: getattr(wide, key)) for key in ("mean", "batch_shape")})
    for key in ("log_prob", "cdf"):
        out[key] = outcome(lambda key=key: getattr(d, key)(given))
    out["wide log_prob"] = outcome(lambda: wide.log_prob(given))
    out["entropy"] = outcome(lambda: d.entropy())
    if not d.event_shape:
        out["icdf"] = outcome(lambda: d.icdf(t(0.3)))
    out["sample"] = tuple(d.sample((3,)).shape)
    out["repr"] = str(d).replace("votive", "torch") if name in ("VonMises", "NegativeBinomial") else ""
    return out


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("name", CASES)
def test_formulas_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    mine, other = asked(votive, D, name), asked(torch, torch.distributions, name)
    for key, value in mine.items():
        if (name, key) == ("Kumaraswamy", "mode"):
            continue  # torch's is NaN; the test below knows better
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, other[key], rtol=2e-6, atol=1e-9, err_msg=key)
        else:
            assert value == other[key] or key == "support", key


@pytest.mark.parity
@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith(("LKJ", "Relaxed", "Generalized"))])
def test_gradients_of_log_prob_are_torchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, value = CASES[name]
    grads = []
    for lib, dists in ((votive, D), (torch, torch.distributions)):
        leaves: list[Any] = []

        def t(x: Any, lib: Any = lib, leaves: list[Any] = leaves) -> Any:
            leaves.append(lib.tensor(np.asarray(x, dtype="f8"), requires_grad=True))
            return leaves[-1]

        made = make(dists, t)
        made.log_prob(lib.tensor(np.asarray(value, dtype="f8"))).sum().backward()
        grads.append([x.grad.numpy() for x in leaves if x.grad is not None])
    for a, b in zip(*grads, strict=True):
        if "NegativeBinomial" in name:  # torch differentiates lgamma(0) - lgamma(0) to NaN
            a, b = np.nan_to_num(a, nan=0.0), np.nan_to_num(b, nan=0.0)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-8)


MOMENTS = [
    "GeneralizedPareto",
    "Weibull",
    "Kumaraswamy",
    "NegativeBinomial",
    "ContinuousBernoulli",
    "Wishart",
    "LowRank",
]


@pytest.mark.parametrize("name", MOMENTS)
def test_samples_have_the_mean_and_variance_of_their_formulas(name: str) -> None:
    votive.manual_seed(0)
    d = CASES[name][0](D, lambda x: votive.tensor(np.asarray(x, dtype="f8")))
    n = 40_000
    x = d.sample((n,)).numpy()
    mean, variance = d.mean.numpy(), d.variance.numpy()
    known = np.isfinite(variance)
    assert (np.abs(x.mean(0) - mean) < 6 * np.sqrt(variance / n))[known].all()
    if name != "GeneralizedPareto":  # whose fourth moments may be infinite
        np.testing.assert_allclose(x.var(0), variance, rtol=0.12)


def test_angles_have_their_circular_moments() -> None:
    votive.manual_seed(1)
    d = D.VonMises(votive.tensor([0.3, -2.0, 3.0]).double(), votive.tensor([0.5, 8.0, 1e-7]).double())
    x = d.sample((40_000,)).numpy()
    assert np.abs(x).max() <= np.pi
    directions = np.exp(1j * x).mean(0)
    np.testing.assert_allclose(np.abs(directions), 1 - d.variance.numpy(), atol=0.02)
    np.testing.assert_allclose(np.angle(directions)[:2], d.loc.numpy()[:2], atol=0.05)


def test_correlations_have_the_variance_of_their_marginal() -> None:
    votive.manual_seed(2)
    factor = D.LKJCholesky(3, votive.tensor(1.5).double()).sample((40_000,))
    c = (factor @ factor.transpose(-2, -1)).numpy()
    np.testing.assert_allclose(np.diagonal(c, axis1=-2, axis2=-1), 1, atol=1e-9)
    # (c + 1) / 2 is Beta(a, a) with a = concentration + (n - 2) / 2
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert c[:, i, j].var() == pytest.approx(1 / (2 * 2.0 + 1), rel=0.05)


def regions(d: Any, t: Any) -> list[Any]:
    c = d.constraints
    return [
        c.real, c.positive, c.nonnegative, c.greater_than(t([1.0, 2.0])), c.greater_than_eq(0.0), c.less_than(t(2.0)),
        c.interval(t(-1.0), t(3.0)), c.half_open_interval(0.0, 1.0), c.unit_interval, c.simplex, c.corr_cholesky,
        c.independent(c.positive, 1), c.cat([c.positive, c.real], 0, [1, 2]), c.stack([c.positive, c.real, c.real], 0),
        c.lower_cholesky, c.positive_definite,
    ]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
@pytest.mark.parametrize("index", range(16))
def test_maps_to_constraints_are_torchs(registry: str, index: int) -> None:
    torch = pytest.importorskip("torch")
    results = []
    for lib, dists in ((votive, D), (torch, torch.distributions)):

        def t(x: Any, lib: Any = lib) -> Any:
            return lib.tensor(np.asarray(x, dtype="f8"))

        region = regions(dists, t)[index]
        shape: tuple[int, ...] = (2,) if index == 3 else (2, 2) if index >= 14 else (3,)
        x = t(np.linspace(-0.9, 0.8, int(np.prod(shape))).reshape(shape))
        try:
            fn = getattr(dists, registry)(region)
        except NotImplementedError as e:
            results.append([str(e).lstrip("_").replace("transform _", "transform ")])
            continue
        y = fn(x)
        slope = fn.log_abs_det_jacobian(x, y).numpy() if fn.bijective else np.zeros(())
        assert bool(region.check(y).all())
        results.append([y.numpy(), fn.inv(y).numpy(), slope])
    for a, b in zip(*results, strict=True):
        if isinstance(a, str):
            assert a.startswith("Cannot transform")
            assert b.startswith("Cannot transform")
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parity
def test_all_of_torchs_distributions_are_there() -> None:
    theirs = pytest.importorskip("torch.distributions")
    assert [n for n in theirs.__all__ if not hasattr(D, n)] == []


def test_the_mode_of_kumaraswamy_is_where_its_density_is_largest() -> None:
    d = D.Kumaraswamy(votive.tensor(1.5).double(), votive.tensor(2.0).double())
    x = votive.linspace(0.01, 0.99, 9801, dtype=votive.float64)
    assert x[d.log_prob(x).argmax()].item() == pytest.approx(d.mode.item(), abs=1e-4)
    assert D.Kumaraswamy(0.5, 0.5).mode.isnan()


PAIRED: dict[str, Callable[[Any, Any], Any]] = {
    "Beta": lambda d, t: d.Beta(t(1.5), t(2.5)),
    "ContinuousBernoulli": lambda d, t: d.ContinuousBernoulli(t([0.3, 0.5, 0.8])),
    "Exponential": lambda d, t: d.Exponential(t(1.5)),
    "Gamma": lambda d, t: d.Gamma(t(1.5), t(0.7)),
    "Gumbel": lambda d, t: d.Gumbel(t(0.3), t(0.7)),
    "Laplace": lambda d, t: d.Laplace(t(0.3), t(0.7)),
    "Normal": lambda d, t: d.Normal(t(0.3), t(0.7)),
    "Pareto": lambda d, t: d.Pareto(t([1.0, 2.0]), t([3.0, 2.5])),
    "Pareto lower": lambda d, t: d.Pareto(t([0.5, 2.5]), t([1.0, 1.5])),
    "Uniform": lambda d, t: d.Uniform(t([-1.0, 0.2, 3.0]), t([2.0, 0.9, 4.0])),
    "LowRank": lambda d, t: d.LowRankMultivariateNormal(t(SHARES), t([[1.0], [0.5], [-0.2]]), t(SHARES)),
    "MultivariateNormal": lambda d, t: d.MultivariateNormal(t([0.0, 1.0, 0.5]), t(CORRELATION)),
}


@pytest.mark.parity
@pytest.mark.parametrize("p", PAIRED)
def test_divergences_are_torchs(p: str) -> None:
    torch = pytest.importorskip("torch")
    for q in PAIRED:
        results = []
        for lib, dists in ((votive, D), (torch, torch.distributions)):

            def t(x: Any, lib: Any = lib) -> Any:
                return lib.tensor(np.asarray(x, dtype="f8"))

            one, other = PAIRED[p](dists, t), PAIRED[q](dists, t)
            shapes = {tuple(x.batch_shape) for x in (one, other)} - {()}
            if len(shapes) > 1:
                continue
            try:
                results.append(dists.kl_divergence(one, other).numpy())
            except NotImplementedError:
                results.append(None)
        if not results:
            continue
        mine, theirs = results
        if theirs is not None:
            assert mine is not None, (p, q)
            np.testing.assert_allclose(
                mine, np.broadcast_to(theirs, mine.shape), rtol=1e-6, atol=1e-12, err_msg=f"{p} {q}"
            )
