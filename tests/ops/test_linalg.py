"""What linear algebra does where a catalog sample cannot reach: large, singular, ill-posed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive as vt

RNG = np.random.default_rng(0)


def random(*shape: int, dtype: str = "float64") -> np.ndarray:
    x = RNG.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


def leaf(a: Any) -> vt.Tensor:
    return vt.from_numpy(np.array(a)).requires_grad_()


SINGULAR = vt.tensor([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
FAILURES: dict[str, Callable[[], Any]] = {
    "solve": lambda: vt.linalg.solve(SINGULAR, vt.ones(2, 1)),
    "inv": lambda: vt.linalg.inv(SINGULAR),
    "inverse": lambda: vt.inverse(SINGULAR),
    "lu_factor": lambda: vt.linalg.lu_factor(SINGULAR),
    "cholesky": lambda: vt.linalg.cholesky(SINGULAR - vt.eye(2) / 2),
    "inv_ex": lambda: vt.linalg.inv_ex(SINGULAR, check_errors=True),
    "cholesky_inverse": lambda: vt.cholesky_inverse(vt.tensor([[[1.0]], [[0.0]]])),
    "lstsq": lambda: vt.linalg.lstsq(
        SINGULAR[1].expand(2, 2, 2) * vt.tensor([[[1.0]], [[1.0]]]), vt.ones(2, 2, 1), driver="gels"
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_singular_matrix_raises_an_error_that_names_it(name: str) -> None:
    with pytest.raises(vt.linalg.LinAlgError, match=r"Batch element \d") as caught:
        FAILURES[name]()
    assert isinstance(caught.value, RuntimeError)


def test_an_iteration_that_fails_says_so() -> None:
    with pytest.raises(vt.linalg.LinAlgError, match="not finite"):
        vt.linalg.svd(vt.full((3, 3), float("nan")))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("shape", [(70, 70), (3, 40, 40), (33, 90), (90, 33)])
def test_lu_of_many_panels_gives_the_matrix_back(shape: tuple[int, ...], dtype: str) -> None:
    a = random(*shape, dtype=dtype)
    p, low, up = vt.linalg.lu(vt.from_numpy(a))
    tol = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose((p @ low @ up).numpy(), a, rtol=tol, atol=tol)
    # Partial pivoting keeps every multiplier small (complex ones by |re| + |im|, hence sqrt 2).
    assert float(low.abs().max()) <= 2**0.5 + 1e-6
    np.testing.assert_array_equal(up.numpy(), np.triu(up.numpy()))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_systems_of_many_panels_are_solved(upper: bool, left: bool) -> None:
    a = np.eye(50) * 3 + random(2, 50, 50) / 50
    a = np.triu(a) if upper else np.tril(a)
    b = random(2, 50, 3) if left else random(2, 3, 50)
    x = vt.linalg.solve_triangular(vt.from_numpy(a), vt.from_numpy(b), upper=upper, left=left)
    np.testing.assert_allclose(a @ x.numpy() if left else x.numpy() @ a, b, rtol=1e-12, atol=1e-12)


def cofactors(a: np.ndarray) -> np.ndarray:
    """By striking out a row and a column."""
    n = len(a)
    out = np.empty_like(a)
    for i, j in itertools.product(range(n), repeat=2):
        minor = np.delete(np.delete(a, i, 0), j, 1)
        out[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return out


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_det_is_the_matrix_of_cofactors_at_any_rank(rank: int, create_graph: bool) -> None:
    for dtype in ("float64", "complex128"):
        a = random(4, rank, dtype=dtype) @ random(rank, 4, dtype=dtype)
        x = leaf(a)
        (g,) = vt.autograd.grad(vt.linalg.det(x), x, vt.ones((), dtype=x.dtype), create_graph=create_graph)
        want = cofactors(a).conj()
        np.testing.assert_allclose(g.detach().numpy(), want, rtol=1e-9, atol=1e-12)


def test_the_gradient_of_det_is_right_where_its_value_is_rounding_noise() -> None:
    a = random(10, 9) @ random(9, 10) * 10
    x = leaf(a)
    vt.linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), cofactors(a), rtol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_the_second_derivative_of_det_exists_at_any_rank(rank: int) -> None:
    a, w = random(3, rank) @ random(rank, 3), random(3, 3)
    x = leaf(a)
    (g,) = vt.autograd.grad(vt.linalg.det(x), x, create_graph=True)
    (h,) = vt.autograd.grad(g, x, vt.from_numpy(w))
    step = 1e-5
    for i, j in itertools.product(range(3), repeat=2):
        e = np.zeros((3, 3))
        e[i, j] = step
        slope = ((cofactors(a + e) - cofactors(a - e)) * w).sum() / (2 * step)
        assert abs(h.numpy()[i, j] - slope) < 1e-7


def test_equal_singular_values_have_a_gradient_where_only_values_are_used() -> None:
    x = leaf(np.eye(3))
    vt.linalg.svd(x).S.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), atol=1e-12)
    y = leaf(np.eye(3))
    vt.linalg.eigh(y).eigenvalues.sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), np.eye(3), atol=1e-12)


def test_equal_singular_values_leave_their_vectors_without_a_gradient() -> None:
    x = leaf(np.eye(3))
    (vt.linalg.svd(x).U ** 3).sum().backward()
    assert not np.isfinite(x.grad.numpy()).all()


PHASES: dict[str, Callable[[vt.Tensor], vt.Tensor]] = {
    "svd": lambda x: vt.linalg.svd(x).U.real.sum(),
    "eigh": lambda x: vt.linalg.eigh(x + x.mH).eigenvectors.real.sum(),
    "eig": lambda x: vt.linalg.eig(x).eigenvectors.imag.sum(),
}


@pytest.mark.parametrize("name", PHASES)
def test_a_loss_that_depends_on_the_phase_of_complex_vectors_is_refused(name: str) -> None:
    x = leaf(random(3, 3, dtype="complex128"))
    with pytest.raises(RuntimeError, match="phase"):
        PHASES[name](x).backward()


@pytest.mark.parametrize(("mode", "shape"), [("r", (3, 3)), ("complete", (4, 2))])
def test_qr_refuses_gradients_that_it_does_not_have(mode: str, shape: tuple[int, int]) -> None:
    r = vt.linalg.qr(leaf(random(*shape)), mode).R
    with pytest.raises(RuntimeError, match="mode="):
        r.sum().backward()


def test_geqrf_has_no_gradient_and_says_what_has() -> None:
    with pytest.raises(NotImplementedError, match=r"linalg\.qr"):
        vt.geqrf(leaf(random(3, 2))).a.sum().backward()


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 30.0])
def test_the_exponential_of_a_symmetric_matrix_is_that_of_its_eigenvalues(scale: float) -> None:
    a = random(4, 4) * scale
    a = a + a.T
    values, vectors = np.linalg.eigh(a)
    want = (vectors * np.exp(values)) @ vectors.T
    got = vt.linalg.matrix_exp(vt.from_numpy(a)).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12 * np.abs(want).max())


def test_each_matrix_of_a_batch_is_scaled_by_itself() -> None:
    a = np.stack([random(3, 3) * s for s in (1e-3, 1.0, 40.0)])
    together = vt.linalg.matrix_exp(vt.from_numpy(a)).numpy()
    for one, x in zip(together, a, strict=True):
        np.testing.assert_array_equal(one, vt.linalg.matrix_exp(vt.from_numpy(x)).numpy())


def test_gelsy_drops_columns_where_gelsd_drops_singular_values() -> None:
    a = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    a[:, 1] += 0.5 * a[:, 0]
    b = random(3, 1)
    pivoted = vt.linalg.lstsq(vt.from_numpy(a), vt.from_numpy(b), rcond=0.9)
    q = a[:, :1]  # the longest column, of length 1
    want = np.linalg.pinv(q @ q.T @ a) @ b
    assert int(pivoted.rank) == 1
    np.testing.assert_allclose(pivoted.solution.numpy(), want, rtol=1e-12)
    cut = vt.linalg.lstsq(vt.from_numpy(a), vt.from_numpy(b), rcond=0.9, driver="gelsd")
    np.testing.assert_allclose(cut.solution.numpy(), np.linalg.pinv(a, rcond=0.9) @ b, rtol=1e-12)


def test_residuals_carry_the_gradient_that_least_squares_promises() -> None:
    a, b = leaf(random(5, 2)), leaf(random(5, 1))
    x, left, _, _ = vt.linalg.lstsq(a, b, driver="gelsd")
    left.sum().backward()
    difference = (a @ x - b).detach().numpy()
    np.testing.assert_allclose(a.grad.numpy(), 2 * difference @ x.detach().numpy().T, atol=1e-12)
    np.testing.assert_allclose(b.grad.numpy(), -2 * difference, atol=1e-12)


def test_results_are_named_as_in_torch() -> None:
    a = vt.eye(2)
    assert vt.linalg.svd(a)._fields == ("U", "S", "Vh")
    assert vt.svd(a)._fields == ("U", "S", "V")
    assert vt.linalg.qr(a)._fields == ("Q", "R")
    assert vt.linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert vt.linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert type(vt.linalg.lu_factor_ex(a)).__name__ == "linalg_lu_factor_ex"


def test_out_of_several_results_is_written_by_position() -> None:
    a = vt.from_numpy(random(3, 2))
    u, s, vh = vt.empty(0).double(), vt.empty(0).double(), vt.empty(0).double()
    same = vt.linalg.svd(a, full_matrices=False, out=(u, s, vh))
    assert same[0] is u
    assert same.Vh is vh
    np.testing.assert_allclose(((u * s) @ vh).numpy(), a.numpy(), atol=1e-12)


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 2), (0, 1), ()], ids=str)
def test_gradients_where_only_some_results_are_used(used: tuple[int, ...]) -> None:
    """Against numerical derivatives, by results whose sign does not matter."""
    rng = np.random.default_rng(3)
    L = vt.linalg
    tall, wide = rng.normal(size=(4, 3)), rng.normal(size=(3, 4))
    square = rng.normal(size=(3, 3)) + 3 * np.diag([1.0, 2, 3])
    for fn, given in (
        (L.qr, tall),
        (L.qr, wide),
        (lambda x: L.svd(x, full_matrices=False), tall),
        (lambda x: L.svd(x, full_matrices=False), wide),
        (lambda x: L.eigh(x @ x.mT), square),
        (L.slogdet, square),
    ):

        def value(x: Any, fn: Any = fn) -> Any:
            parts = fn(x)
            chosen = [parts[k] for k in used if k < len(parts)]
            weights = [vt.arange(p.numel(), dtype=p.dtype).reshape(p.shape) + 1 for p in chosen]
            return sum(((p * p) * w).sum() for p, w in zip(chosen, weights, strict=True)) + (x * x).sum()

        x = vt.from_numpy(given).requires_grad_()
        value(x).backward()
        step, found = 1e-6, np.zeros_like(given)
        for at in np.ndindex(*given.shape):
            ends = []
            for sign in (1, -1):
                moved = given.copy()
                moved[at] += sign * step
                ends.append(value(vt.from_numpy(moved)).item())
            found[at] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(x.grad.numpy(), found, rtol=1e-5, atol=1e-6)
