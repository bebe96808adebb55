"""Small matrices, which programs of our own factor and solve: against the CPU, by layouts, sizes and pivots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from votive.core.errors import LinAlgError

from .device import EMULATED, agree, cpu_fallbacks, normal, placed

RNG = np.random.default_rng(23)
L = votive.linalg
kinds = pytest.mark.parametrize("kind", ["float32", "float64"])
SIZES = [1, 2, 3, 10] if EMULATED else [1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64]
LAYOUTS = ["", "permuted", "sliced"]


def _matrix(*shape: int, kind: str = "float64") -> np.ndarray[Any, Any]:
    return normal(RNG, shape, kind)


def _positive(*shape: int, kind: str = "float64") -> np.ndarray[Any, Any]:
    x = _matrix(*shape, kind=kind)
    return (x @ np.swapaxes(x, -2, -1) + shape[-1] * np.eye(shape[-1])).astype(kind)


def _regular(*shape: int, kind: str = "float64") -> np.ndarray[Any, Any]:
    """Pivots are needed, and no digits are lost."""
    n = shape[-1]
    a = _matrix(*shape, kind=kind) / n**0.5 + 3 * np.eye(n)[RNG.permutation(n)]
    return a.astype(kind)


def held(fn: Callable[..., Any], *given: np.ndarray[Any, Any], how: str = "") -> None:
    """A function gives the same on both devices, by one launch on the GPU."""
    theirs = fn(*[placed(x, how, "cpu") for x in given])
    with cpu_fallbacks() as left:
        ours = fn(*[placed(x, how, "cuda") for x in given])
    assert not left, f"left the GPU: {left}"
    both = (ours, theirs) if isinstance(theirs, (tuple, list)) else ([ours], [theirs])
    tolerance = 2e-4 if given[0].dtype == np.float32 else 1e-10
    for x, y in zip(*both, strict=True):
        agree(x, y, str([g.shape for g in given]), tolerance, scale=1.0)


@kinds
@pytest.mark.parametrize("n", SIZES)
def test_square_matrices(kind: str, n: int) -> None:
    how = LAYOUTS[n % 3]
    batch = ((), (2,), (2, 1, 2))[n % 3]
    a = _regular(*batch, n, n, kind=kind)
    held(L.lu_factor, a, how=how)
    held(L.inv, a, how=how)
    held(L.det, a / 3, how=how)
    held(L.slogdet, a, how=how)
    held(L.solve, a, _matrix(*batch, n, 3, kind=kind), how=how)
    for upper in (False, True):
        p = _positive(*batch, n, n, kind=kind)
        held(lambda a, u=upper: L.cholesky(a, upper=u), p, how=how)
        t = p / n
        b = _matrix(*batch, n, 17, kind=kind)
        held(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u), t, b, how=how)
        held(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u, unitriangular=True), t / 8, b, how=how)
        held(lambda a, b, u=upper: votive.cholesky_solve(b, a, u), t, b, how=how)
        held(lambda a, u=upper: votive.cholesky_inverse(a, u), t, how=how)


def test_more_right_sides_than_a_program_takes() -> None:
    held(L.solve, _regular(2, 5, 5), _matrix(2, 5, 130))
    held(lambda a, b: L.solve_triangular(a, b, upper=True), _positive(2, 5, 5), _matrix(2, 5, 130))


def test_batches_that_broadcast() -> None:
    one, many = _regular(3, 3), _regular(2, 1, 3, 3)
    held(L.solve, one, _matrix(4, 3, 2))
    held(L.solve, many, _matrix(3, 2))
    held(lambda a, b: L.solve_ex(a, b), many, _matrix(4, 3, 2))
    held(lambda a, b: L.solve_triangular(a, b, upper=False), many, _matrix(4, 3, 2))
    # Strides that are no even steps in any two dimensions.
    odd = _regular(2, 3, 2, 3, 3)
    held(lambda a: L.inv(a.transpose(0, 2)), odd)
    held(lambda a: L.cholesky(a.transpose(0, 2)), _positive(2, 3, 2, 2, 2))
    held(lambda a, b: L.solve(a.transpose(0, 1), b), odd, _matrix(3, 2, 2, 3, 1))


@kinds
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (1, 4), (4, 1), (2, 9, 3), (2, 3, 9), (12, 12)])
def test_factors_of_matrices_that_are_not_square(kind: str, shape: tuple[int, ...]) -> None:
    a = _matrix(*shape, kind=kind)
    for how in LAYOUTS:
        held(L.lu_factor, a, how=how)
        held(votive.geqrf, a, how=how)
        for mode in ("reduced", "complete"):
            held(lambda a, m=mode: L.qr(a, m), a, how=how)
    held(lambda a: L.qr(a, "r")[1], a)


def test_matrices_that_one_program_holds_without_q() -> None:
    shapes = [(2, 9, 130), (70, 5), (2, 40, 3)] if EMULATED else [(70, 70), (3, 128, 128), (500, 20), (20, 500)]
    for shape in shapes:
        held(L.qr, _matrix(*shape))
        held(lambda a: L.qr(a, "r")[1], _matrix(*shape))
        held(votive.geqrf, _matrix(*shape))


@kinds
def test_products_of_reflections(kind: str) -> None:
    for shape, how in [((4, 4), ""), ((2, 5, 3), "permuted"), ((70, 3), "sliced")]:
        v, tau = (t.numpy() for t in votive.geqrf(votive.from_numpy(_matrix(*shape, kind=kind))))
        c = _matrix(*shape[:-1], 18, kind=kind)
        held(L.householder_product, v, tau, how=how)
        held(votive.ormqr, v, tau, c, how=how)
        held(lambda v, t, c: votive.ormqr(v, t, c, transpose=True), v, tau, c, how=how)


def test_reflections_of_columns_that_are_zero_tiny_or_huge() -> None:
    a = _matrix(4, 3)
    a[1:, 0] = 0  # no reflection: the sign stays
    held(L.qr, a)
    held(L.qr, np.zeros((3, 2)))
    for scale in (1e-200, 1e200):
        q, r = L.qr(votive.from_numpy(_matrix(4, 3) * scale).to("cuda"))
        again = (q @ (r / scale)).cpu().numpy()
        assert np.isfinite(again).all()
        np.testing.assert_allclose((q.mT @ q).cpu().numpy(), np.eye(3), atol=1e-12)


def test_the_first_of_equal_pivots_is_taken() -> None:
    a = np.array([[1.0, 2, 3], [-1, 5, 6], [1, 10, 9]])
    assert L.lu_factor(votive.from_numpy(a).to("cuda")).pivots.tolist() == [1, 3, 3]


def test_what_is_singular_or_not_positive_is_told() -> None:
    a = np.stack([np.eye(3), np.diag([1.0, 0, 2])])
    x = votive.from_numpy(a).to("cuda")
    for fn in (L.inv, lambda x: L.solve(x, x), L.lu_factor):
        with pytest.raises(LinAlgError, match="Batch element 1"):
            fn(x)
    assert L.inv_ex(x).info.tolist() == [0, 2]
    assert L.det(x).tolist() == [1, 0]
    assert L.slogdet(x).logabsdet.tolist() == [0, -np.inf]
    for bad in (-1.0, 0.0, float("nan")):
        x = votive.from_numpy(np.stack([np.eye(3), np.diag([1.0, bad, 1])])).to("cuda")
        assert L.cholesky_ex(x).info.tolist() == [0, 2]
        with pytest.raises(LinAlgError, match=r"Batch element 1.*order 2"):
            L.cholesky(x)
    nan = votive.from_numpy(np.full((2, 2), np.nan)).to("cuda")
    assert L.det(nan).isnan().item()
    assert L.lu_factor(nan).pivots.tolist() == L.lu_factor(nan.cpu()).pivots.tolist()


def test_a_triangle_with_a_zero_on_its_diagonal_gives_infinities() -> None:
    held(lambda a, b: L.solve_triangular(a, b, upper=False), np.array([[1.0, 0], [1, 0]]), np.array([[1.0], [3.0]]))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_gradients_agree_with_the_cpu(n: int) -> None:
    b = _matrix(2, n, 2)
    for fn in (
        L.cholesky,
        L.inv,
        lambda x: L.slogdet(x)[1],
        lambda x: L.solve(x, votive.from_numpy(b).to(x.device)),
        lambda x: L.solve_triangular(x, votive.from_numpy(b).to(x.device), upper=True),
        lambda x: votive.cholesky_solve(votive.from_numpy(b).to(x.device), x),
        lambda x: L.lu_factor(x)[0],
        lambda x: L.qr(x)[1],
        lambda x: L.qr(x)[0],
    ):
        a = _positive(2, n, n)
        grads = []
        for device in ("cpu", "cuda"):
            x = votive.from_numpy(a).to(device).requires_grad_()
            (fn(x) ** 2).sum().backward()
            grads.append(x.grad)
        agree(grads[1], grads[0], str(fn), 1e-8, scale=1.0)
