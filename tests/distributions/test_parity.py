"""Distributions compared with those of torch: densities, moments, gradients, forms, errors."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import votive as vt
import votive.distributions as D

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

LIBRARIES = {"torch": (torch, torch.distributions), "votive": (vt, D)}
RNG = np.random.default_rng(0)
MULTINOMIAL_ENTROPY = 1e-6  # torch takes log n! in float32


def real(*shape: int) -> np.ndarray:
    return np.asarray(RNG.normal(size=shape))


def positive(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(0.3, 3, shape))


def chance(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(0.1, 0.9, shape))


def definite(*batch: int) -> np.ndarray:
    a = RNG.normal(size=(*batch, 3, 3))
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(3)


def cases() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    found: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    for a, b in [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 4))]:
        for name in ("Normal", "Laplace", "Cauchy", "Gumbel", "LogNormal"):
            found.append((name, (real(*a), positive(*b)), {}))
        found.append(("Uniform", (real(*a) - 3, positive(*b) + 1), {}))
        found.append(("Gamma", (positive(*a), positive(*b)), {}))
        found.append(("Beta", (positive(*a), positive(*b)), {}))
        found.append(("StudentT", (positive(*a) + 0.2, real(*b), positive(*b)), {}))
        found.append(("Binomial", (np.full(a, 5.0),), {"probs": chance(*b)}))
        found.append(("Binomial", (np.full(a, 4.0),), {"logits": real(*b)}))
    for s in [(), (3,), (2, 3)]:
        for name in ("Exponential", "HalfNormal", "HalfCauchy", "Chi2", "Poisson"):
            found.append((name, (positive(*s),), {}))
        for name in ("Bernoulli", "Geometric"):
            found.append((name, (), {"probs": chance(*s)}))
            found.append((name, (), {"logits": real(*s)}))
    for s in [(3,), (2, 4), (2, 3, 2)]:
        found.append(("Dirichlet", (positive(*s),), {}))
        for name in ("Categorical", "OneHotCategorical"):
            found.append((name, (), {"probs": positive(*s)}))
            found.append((name, (), {"logits": real(*s)}))
        found.append(("Multinomial", (6,), {"probs": positive(*s)}))
    for a, b in [((), ()), ((2,), ()), ((), (2,)), ((4, 2), (2,)), ((2, 1), (3,))]:
        for form in ("covariance_matrix", "precision_matrix"):
            found.append(("MultivariateNormal", (real(*a, 3),), {form: definite(*b)}))
        factor = np.linalg.cholesky(definite(*b))
        found.append(("MultivariateNormal", (real(*a, 3),), {"scale_tril": factor}))
    return found


CASES = cases()
IDS = [f"{n}-{'-'.join(str(np.shape(v)) for v in (*a, *k.values()))}" for n, a, k in CASES]


def build(library: str, case: Any) -> tuple[Any, list[Any]]:
    """A distribution in float64 and the tensors it depends on."""
    lib, space = LIBRARIES[library]
    leaves: list[Any] = []

    def make(value: Any) -> Any:
        if isinstance(value, int):
            return value
        leaves.append(lib.tensor(value, dtype=lib.float64, requires_grad=True))
        return leaves[-1]

    name, args, kwargs = case
    made = [make(v) for v in args]
    return getattr(space, name)(*made, **{k: make(v) for k, v in kwargs.items()}), leaves


def pair(case: Any) -> tuple[Any, Any]:
    return build("votive", case), build("torch", case)


def same(got: Any, want: Any, what: str, tol: float = 1e-9) -> None:
    got, want = got.detach().numpy(), want.detach().numpy()
    assert (got.shape, got.dtype) == (want.shape, want.dtype), what
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol, err_msg=what)


def outcome(fn: Any) -> Any:
    """What a function gives, or that it is not implemented."""
    try:
        return fn()
    except NotImplementedError:
        return None


def same_gradients(got: Any, g_in: Any, want: Any, w_in: Any, what: str) -> None:
    kw: Any = {"allow_unused": True, "retain_graph": True}
    for a, b in zip(vt.autograd.grad(got.sum(), g_in, **kw), torch.autograd.grad(want.sum(), w_in, **kw), strict=True):
        if a is None or b is None:
            left = b if a is None else a
            assert left is None or not left.numpy().any(), what
        else:
            same(a, b, what, 1e-8)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_shapes_forms_and_moments_agree(case: Any) -> None:
    (d, _), (w, _) = pair(case)
    assert (tuple(d.batch_shape), tuple(d.event_shape)) == (tuple(w.batch_shape), tuple(w.event_shape))
    assert repr(d) == repr(w).replace("torch.", "votive.")
    assert (d.has_rsample, d.has_enumerate_support) == (w.has_rsample, w.has_enumerate_support)
    for name in ("mean", "mode", "variance", "stddev"):
        got, want = (outcome(lambda x=x, n=name: getattr(x, n)) for x in (d, w))
        assert (got is None) == (want is None), name
        if want is not None:
            same(got, want, name)
    for name in ("entropy", "perplexity"):
        got, want = (outcome(getattr(x, name)) for x in (d, w))
        assert (got is None) == (want is None), name
        if want is not None:
            same(got, want, name, MULTINOMIAL_ENTROPY if case[0] == "Multinomial" else 1e-9)
    if w.has_enumerate_support:
        for expand in (True, False):
            same(d.enumerate_support(expand), w.enumerate_support(expand), "enumerate_support")


@pytest.mark.parametrize("sample", [(), (5,), (2, 1)], ids=str)
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_densities_and_their_gradients_agree(case: Any, sample: tuple[int, ...]) -> None:
    (d, leaves), (w, w_leaves) = pair(case)
    torch.manual_seed(0)
    x = w.sample(sample)
    value = vt.tensor(x.numpy())
    got, want = d.log_prob(value), w.log_prob(x)
    same(got, want, "log_prob")
    same_gradients(got, leaves, want, w_leaves, "log_prob")
    q = np.random.default_rng(0).uniform(0.05, 0.95, tuple(x.shape))
    for name, mine, theirs in (("cdf", value, x), ("icdf", vt.tensor(q), torch.tensor(q))):
        got = outcome(lambda n=name, v=mine: getattr(d, n)(v))
        want = outcome(lambda n=name, v=theirs: getattr(w, n)(v))
        assert (got is None) == (want is None), name
        if want is not None:
            same(got, want, name)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_expanded_distributions_agree(case: Any) -> None:
    (d, _), (w, _) = pair(case)
    shape = (3, *w.batch_shape)
    d, w = d.expand(shape), w.expand(shape)
    x = w.sample((2,))
    same(d.log_prob(vt.tensor(x.numpy())), w.log_prob(x), "log_prob")
    mine = d.sample((2,))
    assert (tuple(mine.shape), mine.numpy().dtype) == (tuple(x.shape), x.numpy().dtype)


def families() -> dict[str, tuple[np.ndarray, ...]]:
    found: dict[str, tuple[np.ndarray, ...]] = {
        n: (real(2, 3), positive(3)) for n in ("Normal", "Laplace", "Cauchy", "Gumbel", "LogNormal")
    }
    found |= {
        n: (positive(2, 3),)
        for n in (
            "Exponential",
            "HalfNormal",
            "HalfCauchy",
            "Chi2",
            "Poisson",
            "StudentT",
            "Dirichlet",
            "Categorical",
            "OneHotCategorical",
        )
    }
    found |= {n: (chance(2, 3),) for n in ("Bernoulli", "Geometric")}
    return found | {
        "Uniform": (0.4 * chance(2, 3), 0.5 + 0.4 * chance(2, 3)),
        "Gamma": (positive(2, 3), positive(3)),
        "Beta": (positive(2, 3), positive(3)),
        "Binomial": (np.full((2, 3), 5.0), chance(3)),
        "MultivariateNormal": (real(2, 3), definite(2)),
    }


FAMILIES = families()


def widened(name: str, params: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Other parameters: for Uniform a range around all, else a little smaller ones."""
    if name == "Uniform":
        return params[0] - 2, params[1] + 2
    if name in ("Binomial", "MultivariateNormal"):
        return params[0], params[1] * 1.1
    return tuple(0.9 * v for v in params)


@pytest.mark.parametrize("p", FAMILIES)
def test_divergences_and_their_gradients_agree(p: str) -> None:
    for q, other in itertools.product(FAMILIES, (False, True)):
        given = widened(q, FAMILIES[q]) if other else FAMILIES[q]
        results = []
        for library, (_, space) in LIBRARIES.items():
            a, a_in = build(library, (p, FAMILIES[p], {}))
            b, b_in = build(library, (q, given, {}))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kl = outcome(lambda space=space, a=a, b=b: space.kl_divergence(a, b))
            results.append((kl, a_in + b_in))
        (want, w_in), (got, g_in) = results
        assert (got is None) == (want is None), (p, q)
        if want is not None:
            same(got, want, f"{p} {q}")
            if want.requires_grad and torch.isfinite(want).all():
                same_gradients(got, g_in, want, w_in, f"{p} {q}")


EXPRESSIONS = """
D.Normal(0., 1.)
D.Normal(x, x.exp())
D.Normal(0., -1.)
D.Normal(0., float('nan'))
D.Normal([0.], 1.)
D.Normal(0, 1).log_prob(lib.tensor(0.5))
D.Normal(x, 1.).log_prob(lib.zeros(2))
D.Normal(x, 1.).log_prob(lib.zeros(4, 2, 3))
D.Normal(0., 1.).log_prob(0.5)
D.Normal(0., 1.).log_prob(lib.tensor(float('nan')))
D.Normal(x[0], 1.).expand((2, 2))
D.Bernoulli()
D.Bernoulli(0.5, 0.5)
D.Bernoulli(1.5)
D.Bernoulli(0.5).log_prob(lib.tensor(0.25))
D.Bernoulli(lib.tensor([0.5, 0.0, 1.0])).mode
D.Bernoulli(lib.tensor([0.5, 0.0, 1.0])).log_prob(lib.tensor([1.0, 0.0, 1.0]))
D.Bernoulli(0.5).rsample()
D.Binomial(lib.tensor([3., 4.]), lib.tensor(0.5)).entropy()
D.Binomial(-1, lib.tensor(0.5))
D.Binomial(3, lib.tensor(0.5)).log_prob(lib.tensor(4.))
D.Categorical(lib.tensor(1.))
D.Categorical(lib.tensor([-1., 2.]))
D.Categorical(lib.tensor([1., 1., 2.])).log_prob(lib.tensor([0, 2]))
D.Categorical(lib.tensor([1., 1., 2.])).log_prob(lib.tensor(3))
D.Categorical(logits=lib.tensor([0., -float('inf')])).entropy()
D.Categorical(lib.ones(2, 3)).param_shape
D.Dirichlet(lib.tensor(1.))
D.Dirichlet(lib.tensor([0.5, 0.5, 0.1])).mode
D.Dirichlet(lib.tensor([0.5, 2.5, 0.1])).mode
D.Dirichlet(lib.ones(3)).log_prob(lib.tensor([0.5, 0.5, 0.5]))
D.Exponential(1.).log_prob(lib.tensor(-1.))
D.Exponential(lib.tensor([1., 2.])).support
D.Gamma(1., 0.)
D.Gamma(2., 1.).log_prob(1)
D.Geometric(0.)
D.Geometric(lib.tensor(1.)).log_prob(lib.tensor([0., 0.]))
D.Gumbel(0., 1.).icdf(lib.tensor(0.5))
D.HalfNormal(-1.)
D.HalfNormal(1.).log_prob(lib.tensor(-1.))
D.HalfNormal(1., validate_args=False).log_prob(lib.tensor(-1.))
D.Independent(D.Normal(x, 1.), 3)
D.Independent(D.Normal(x, 1.), 1).entropy()
D.Independent(D.Bernoulli(lib.full((2,), .5)), 1).enumerate_support()
D.Independent(D.Normal(x, 1.), 1).expand((4, 2)).batch_shape
D.Independent(D.Normal(x, 1.), 2).support
D.kl_divergence(D.Independent(D.Normal(x, 1.), 1), D.Independent(D.Normal(x, 2.), 1))
D.kl_divergence(D.Independent(D.Normal(x, 1.), 1), D.Independent(D.Normal(x, 2.), 2))
D.kl_divergence(D.LogNormal(0., 1.), D.HalfNormal(1.))
D.kl_divergence(D.Normal(0., 1.), D.Cauchy(0., 1.))
D.MixtureSameFamily(D.Categorical(lib.ones(3)), D.Normal(x, 1.)).log_prob(lib.zeros(5, 2))
D.MixtureSameFamily(D.Categorical(lib.ones(2, 3)), D.Normal(x, 1.)).cdf(lib.zeros(5, 2))
D.MixtureSameFamily(D.Categorical(lib.ones(3)), D.Normal(x, 1.)).mean
D.MixtureSameFamily(D.Categorical(lib.ones(3)), D.Normal(x, 1.)).variance
D.MixtureSameFamily(D.Categorical(lib.ones(2, 3)), D.Normal(x, 1.)).sample((4,)).shape
D.MixtureSameFamily(D.Categorical(lib.ones(2)), D.Independent(D.Normal(x, 1.), 1))
D.MixtureSameFamily(D.Categorical(lib.ones(2)), D.Independent(D.Normal(x, 1.), 1)).variance
D.MixtureSameFamily(D.Categorical(lib.ones(2)), D.Independent(D.Normal(x, 1.), 1)).expand((4,)).mean
D.MixtureSameFamily(D.Categorical(lib.ones(2)), D.Normal(x, 1.))
D.MixtureSameFamily(D.Normal(0., 1.), D.Normal(x, 1.))
D.Multinomial(lib.tensor(3), lib.ones(2))
D.Multinomial(3, lib.tensor([1., 0.])).log_prob(lib.tensor([3., 0.]))
D.Multinomial(3, logits=lib.tensor([1., -float('inf')])).log_prob(lib.tensor([3., 0.]))
D.Multinomial(3, lib.ones(2)).log_prob(lib.tensor([3., 1.]))
D.MultivariateNormal(lib.tensor(0.), lib.eye(1))
D.MultivariateNormal(lib.zeros(2), lib.eye(2), lib.eye(2))
D.MultivariateNormal(lib.zeros(2), lib.ones(2))
D.MultivariateNormal(lib.zeros(2), -lib.eye(2))
D.MultivariateNormal(lib.zeros(2), lib.tensor([[1., 2.], [0., 1.]]))
D.MultivariateNormal(lib.zeros(2), scale_tril=lib.ones(2, 2))
D.MultivariateNormal(lib.zeros(3, 2), lib.eye(2))
D.MultivariateNormal(lib.zeros(3, 2), lib.eye(2)).precision_matrix
D.MultivariateNormal(lib.zeros(2), precision_matrix=lib.eye(2) * 4).covariance_matrix
D.MultivariateNormal(lib.zeros(3, 2), lib.eye(2)).variance
D.OneHotCategorical(lib.ones(3)).log_prob(lib.tensor([0., 1., 1.]))
D.OneHotCategorical(lib.ones(2, 3)).enumerate_support().shape
D.Poisson(0.).log_prob(lib.tensor([0., 1.]))
D.Poisson(-1.)
D.Poisson(1.).entropy()
D.StudentT(lib.tensor([0.5, 1.5, 3.])).variance
D.StudentT(lib.tensor([0.5, 1.5, 3.])).mean
D.Uniform(1., 1.)
D.Uniform(0., 1.).log_prob(lib.tensor([0., 0.5, 1.]))
D.Uniform(0., 1.).log_prob(lib.tensor(2.))
D.Uniform(0., 1., validate_args=False).log_prob(lib.tensor([-1., 2.]))
D.Uniform(0., 1.).support
D.constraints.is_dependent(D.Uniform.support)
D.Uniform.support.event_dim
D.Independent.support.event_dim
D.constraints.dependent.check(x)
D.constraints.independent(D.constraints.positive, 1)
D.constraints.independent(D.constraints.positive, 1).check(x)
D.constraints.integer_interval(0, 3).check(x)
D.constraints.half_open_interval(0, 3).check(x)
D.constraints.one_hot.check(lib.eye(3))
D.constraints.lower_cholesky.check(lib.tensor([[1., 0.], [1., 0.]]))
D.constraints.corr_cholesky.check(lib.eye(2))
D.constraints.positive_definite.check(lib.eye(2).expand(3, 2, 2))
D.constraints.positive_semidefinite.check(lib.ones(2, 2))
D.constraints.square.check(lib.ones(4, 2, 3))
D.constraints.cat([D.constraints.positive, D.constraints.real], 1, [1, 2]).check(x)
D.constraints.stack([D.constraints.positive, D.constraints.real], 0).check(x)
D.constraints.multinomial(3)
D.ExpTransform()(x)
D.ExpTransform() == D.ExpTransform()
D.ExpTransform() == D.TanhTransform()
D.AffineTransform(0., 2.) == D.AffineTransform(0., 2.)
D.AffineTransform(x, 2.) == D.AffineTransform(x + 1, 2.)
D.AffineTransform(0., lib.tensor([2., -2.])).sign
D.AffineTransform(0., 2., event_dim=1).log_abs_det_jacobian(x, x)
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0., 2.)]).inv(x + 1)
D.ComposeTransform([D.SoftmaxTransform(), D.ExpTransform()]).domain.event_dim
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0., -2.)])
D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0., -2.)]).sign
D.IndependentTransform(D.ExpTransform(), 1)
D.ReshapeTransform((3,), (3, 1)).forward_shape((2, 3))
D.ReshapeTransform((3,), (2,))
D.ReshapeTransform((3,), (3, 1)).forward_shape((2, 4))
D.StickBreakingTransform()(x)
D.StickBreakingTransform().forward_shape(lib.Size((2, 3)))
D.SoftmaxTransform()(x)
D.SoftmaxTransform().event_dim
D.StickBreakingTransform().log_abs_det_jacobian(x, D.StickBreakingTransform()(x))
D.PositiveDefiniteTransform()(x[:, :2] / 5)
D.LowerCholeskyTransform().inv(lib.eye(2))
D.TanhTransform().inv
D.TanhTransform().log_abs_det_jacobian(x * 20, None)
D.SigmoidTransform()(x * 100)
D.PowerTransform(lib.tensor(-2.)).sign
D.TransformedDistribution(D.Normal(x, 1.), [])
D.TransformedDistribution(D.Normal(x, 1.), D.ExpTransform()).log_prob(x + 1)
D.TransformedDistribution(D.Normal(x, 1.), [D.SoftmaxTransform()]).event_shape
D.TransformedDistribution(D.Normal(x, 1.), [D.StickBreakingTransform()]).event_shape
D.TransformedDistribution(D.Normal(0., 1.), [D.StickBreakingTransform()])
D.TransformedDistribution(D.Normal(0., 1.), [D.AffineTransform(x, 2.)]).batch_shape
D.TransformedDistribution(D.Normal(0., 1.), [D.AffineTransform(x, -2.)]).cdf(x)
D.TransformedDistribution(D.Normal(0., 1.), [D.AffineTransform(x, -2.)]).icdf(x / 10 + 0.2)
D.TransformedDistribution(D.Normal(x, 1.), 3)
D.TransformedDistribution(D.Normal(x, 1.), [3])
D.TransformedDistribution(D.Normal(x, 1.), D.AbsTransform()).log_prob(x + 1)
D.TransformedDistribution(D.Normal(x, 1.), D.ExpTransform()).entropy()
D.TransformedDistribution(D.Normal(x[0], 1.), D.ExpTransform()).expand((2, 3)).log_prob(x + 1)
D.TransformedDistribution(D.Dirichlet(lib.ones(3)), D.AffineTransform(0., 1.)).event_shape
D.Distribution().log_prob(x)
""".strip().splitlines()
KINDS = (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError)


def described(library: str, expression: str) -> Any:
    """(form, numbers) of what an expression gives, or the kind of error."""
    lib, space = LIBRARIES[library]
    scope = {"lib": lib, "D": space, "x": lib.arange(6.0).reshape(2, 3) / 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(expression, scope)
        except KINDS as e:
            return next(k.__name__ for k in KINDS if isinstance(e, k)), None
    if isinstance(value, lib.Tensor):
        return (str(value.dtype).partition(".")[2], tuple(value.shape)), value.detach().numpy()
    return str(value).replace("torch.", "").replace("votive.", ""), None


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_means_the_same(expression: str) -> None:
    (got, numbers), (want, values) = described("votive", expression), described("torch", expression)
    assert got == want
    if values is not None:
        np.testing.assert_allclose(numbers, values, rtol=1e-5, atol=1e-6)


def test_slopes_of_gamma_and_beta_samples_agree_within_the_accuracy_of_torch() -> None:
    from votive.ops.registry import F

    rng = np.random.default_rng(1)
    a, b = np.exp(rng.uniform(-3, 6, (2, 500)))
    x = np.maximum(rng.gamma(a), 1e-300)
    got = F._standard_gamma_grad(vt.tensor(a), vt.tensor(x)).numpy()
    want = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(x)).numpy()
    np.testing.assert_allclose(got, want, rtol=2e-3)
    x = np.clip(rng.beta(a, b), 1e-12, 1 - 1e-9)
    got = F._dirichlet_grad(vt.tensor(x), vt.tensor(a), vt.tensor(a + b)).numpy()
    want = torch._dirichlet_grad(*map(torch.tensor, (x, a, a + b))).numpy()
    np.testing.assert_allclose(got, want, rtol=5e-3)
