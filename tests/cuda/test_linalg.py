"""Factors and solutions of matrices: what cuSOLVER and cuBLAS are asked for (stand-ins on host
memory answer), and on a real GPU what they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import votive
from votive.core.errors import LinAlgError

from .device import EMULATED, agree, cpu_fallbacks, normal, placed
from .libraries import solvers

RNG = np.random.default_rng(11)
# The emulated GPU copies slowly.
KINDS = ["float64", "complex64"] if EMULATED else ["float32", "float64", "complex64", "complex128"]
kinds = pytest.mark.parametrize("kind", KINDS)
L = votive.linalg


@pytest.fixture(autouse=True)
def library() -> Iterator[Any]:
    """Stand-ins where the GPU is emulated, else the real libraries (None)."""
    with solvers() as found:
        yield found


def _matrix(*shape: int, kind: str = "float64") -> np.ndarray[Any, Any]:
    return normal(RNG, shape, kind)


def _positive(*shape: int, kind: str = "float64") -> np.ndarray[Any, Any]:
    x = _matrix(*shape, kind=kind)
    a = x @ np.swapaxes(x, -2, -1).conj() + shape[-1] * np.eye(shape[-1])
    return a.astype(kind)


def _tolerance(x: np.ndarray[Any, Any]) -> float:
    return 2e-4 if x.dtype in (np.float32, np.complex64) else 1e-10


def held(fn: Callable[..., Any], *given: np.ndarray[Any, Any], how: str = "") -> None:
    """A function gives the same on both devices, and never leaves the GPU."""
    theirs = fn(*[placed(x, how, "cpu") for x in given])
    with cpu_fallbacks() as left:
        ours = fn(*[placed(x, how, "cuda") for x in given])
    assert not left, f"left the GPU: {left}"
    both = (ours, theirs) if isinstance(theirs, (tuple, list)) else ([ours], [theirs])
    for x, y in zip(*both, strict=True):
        agree(x, y, str([g.shape for g in given]), _tolerance(given[0]), scale=1.0)


SHAPES = [(4, 4), (2, 1, 3, 3)] if EMULATED else [(1, 1), (4, 4), (3, 5, 5), (2, 1, 3, 3)]


@kinds
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_factors_and_what_they_solve(kind: str, upper: bool) -> None:
    for shape in SHAPES:
        for how in ("", "permuted"):
            held(lambda a: L.cholesky(a, upper=upper), _positive(*shape, kind=kind), how=how)
        low = np.linalg.cholesky(_positive(*shape, kind=kind)).astype(kind)
        factor = np.swapaxes(low, -2, -1).conj() if upper else low
        b = _matrix(*shape[:-1], 2, kind=kind)
        for how in ("", "permuted", "sliced"):
            held(lambda b, f: votive.cholesky_solve(b, f, upper), b, factor, how=how)
        held(lambda f: votive.cholesky_inverse(f, upper), factor)


def test_a_matrix_that_is_not_positive_is_told() -> None:
    a = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])])
    x = votive.from_numpy(a).to("cuda")
    with pytest.raises(LinAlgError, match=r"Batch element 1.*order 2"):
        L.cholesky(x)
    assert L.cholesky_ex(x).info.tolist() == [0, 2]
    with pytest.raises(LinAlgError, match="order 2"):
        L.cholesky(x[1])


@pytest.mark.parametrize("upper", [False, True])
def test_tiles_of_the_other_triangle_are_zero_and_pivots_that_are_no_numbers_are_told(upper: bool) -> None:
    a = np.stack([_positive(133, 133), np.eye(133)])
    held(lambda a: L.cholesky(a, upper=upper), a)
    a[1, 40, 40] = np.nan
    assert L.cholesky_ex(_on_gpu(a), upper=upper).info.tolist() == [0, 41]


@kinds
def test_triangles_are_solved_from_either_side(kind: str) -> None:
    for shape in SHAPES:
        a, n = _matrix(*shape, kind=kind) + 3 * np.eye(shape[-1], dtype=kind), shape[-1]
        left, right = _matrix(*shape[:-1], 2, kind=kind), _matrix(*shape[:-2], 3, n, kind=kind)
        for upper in (False, True):
            for how in ("", "permuted", "sliced"):
                held(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u), a, left, how=how)
            held(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u, left=False), a, right)
            held(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u, unitriangular=True), a, left)
    # One triangle for a batch of sides, and a batch of triangles for one.
    one = _matrix(3, 3, kind=kind) + 3 * np.eye(3, dtype=kind)
    held(lambda a, b: L.solve_triangular(a, b, upper=True), one, _matrix(4, 3, 2, kind=kind))
    many = _matrix(4, 3, 3, kind=kind) + 3 * np.eye(3, dtype=kind)
    held(lambda a, b: L.solve_triangular(a, b, upper=True), many, _matrix(3, 2, kind=kind))
    uneven = _matrix(2, 1, 2, 3, 3, kind=kind) + 3 * np.eye(3, dtype=kind)
    held(lambda a, b: L.solve_triangular(a, b, upper=True), uneven, _matrix(3, 2, 3, 2, kind=kind))
    held(lambda a, b: L.solve_triangular(a.mT, b, upper=True), uneven, _matrix(3, 2, 3, 2, kind=kind))


@kinds
def test_lu_factors(kind: str) -> None:
    for shape in [*SHAPES, (5, 3), (3, 5), (2, 4, 3)]:
        for how in ("", "permuted"):
            held(L.lu_factor, _matrix(*shape, kind=kind), how=how)
        held(L.lu, _matrix(*shape, kind=kind))


@kinds
def test_systems_and_inverses(kind: str) -> None:
    for shape in SHAPES:
        a = _matrix(*shape, kind=kind) + 2 * np.eye(shape[-1], dtype=kind)
        for how in ("", "permuted"):
            held(L.inv, a, how=how)
            held(L.solve, a, _matrix(*shape[:-1], 2, kind=kind), how=how)
    a = _matrix(3, 3, kind=kind)
    held(L.solve, a, _matrix(3, kind=kind))
    held(L.solve, a, _matrix(4, 3, 2, kind=kind))
    held(lambda a, b: L.solve(a, b, left=False), a, _matrix(2, 3, kind=kind))


def test_a_singular_matrix_is_told() -> None:
    x = votive.from_numpy(np.stack([np.eye(2), np.zeros((2, 2))])).to("cuda")
    with pytest.raises(LinAlgError, match="Batch element 1"):
        L.inv(x)
    with pytest.raises(LinAlgError):
        L.solve(x[1], x[0])


@kinds
def test_determinants(kind: str) -> None:
    for shape in SHAPES:
        a = _matrix(*shape, kind=kind)
        held(L.det, a)
        held(L.slogdet, a, how="permuted")
    held(L.det, np.zeros((2, 2), kind))
    held(L.slogdet, np.zeros((2, 2), kind))


@kinds
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_factors(kind: str, mode: str) -> None:
    for shape in [(4, 4), (5, 3), (3, 5), (2, 4, 3)]:
        a = _matrix(*shape, kind=kind)
        x = placed(a, "permuted", "cuda")
        with cpu_fallbacks() as left:
            q, r = L.qr(x, mode)
        assert not left
        assert r.cpu().triu().equal(r.cpu())
        if mode == "r":
            theirs = L.qr(votive.from_numpy(a), mode)[1]
            agree(r.abs(), theirs.abs(), "r", _tolerance(a), scale=1.0)
            continue
        agree(q @ r, votive.from_numpy(a), "q r", _tolerance(a), scale=1.0)
        one = votive.eye(q.shape[-1], dtype=q.dtype).expand(*shape[:-2], -1, -1).contiguous()
        agree(q.mH @ q, one, "q", _tolerance(a), scale=1.0)


@kinds
def test_reflections(kind: str) -> None:
    for shape in [(4, 4), (5, 3), (2, 4, 3)]:
        v, tau = votive.geqrf(votive.from_numpy(_matrix(*shape, kind=kind)))
        held(L.householder_product, v.numpy(), tau.numpy())
        c = _matrix(*shape[:-1], 2, kind=kind)
        held(votive.ormqr, v.numpy(), tau.numpy(), c)
        held(lambda v, t, c: votive.ormqr(v, t, c, transpose=True), v.numpy(), tau.numpy(), c)
    a = _matrix(5, 3, kind=kind)
    ours, theirs = votive.geqrf(placed(a, "", "cuda")), votive.geqrf(votive.from_numpy(a))
    agree(ours[0].abs(), theirs[0].abs(), "geqrf", _tolerance(a), scale=1.0)


@kinds
@pytest.mark.parametrize("full", [False, True])
def test_singular_values(kind: str, full: bool) -> None:
    for shape in [(1, 1), (4, 4), (5, 3), (3, 5), (3, 4, 4), (2, 4, 3)]:
        a = _matrix(*shape, kind=kind)
        with cpu_fallbacks() as left:
            u, s, vh = L.svd(placed(a, "permuted", "cuda"), full)
            values = L.svdvals(placed(a, "", "cuda"))
        assert not left
        theirs = L.svd(votive.from_numpy(a), full)
        assert [t.shape for t in (u, s, vh)] == [t.shape for t in theirs]
        agree(s, theirs[1], "s", _tolerance(a), scale=1.0)
        agree(values, theirs[1], "values", _tolerance(a), scale=1.0)
        k = min(shape[-2:])
        again = (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]
        agree(again, votive.from_numpy(a), "u s vh", _tolerance(a), scale=1.0)
        for q in (u.mH @ u, vh @ vh.mH):
            one = votive.eye(q.shape[-1], dtype=q.dtype).expand(q.shape).contiguous()
            agree(q, one, "orthonormal", _tolerance(a), scale=1.0)


@kinds
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_of_hermitian_matrices(kind: str, uplo: str) -> None:
    for shape in [(1, 1), (4, 4), (3, 5, 5), (2, 33, 33)]:
        a = _positive(*shape, kind=kind)
        # Only one triangle is read.
        half = np.tril(a) if uplo == "L" else np.triu(a)
        with cpu_fallbacks() as left:
            values, v = L.eigh(placed(half, "", "cuda"), uplo)
            alone = L.eigvalsh(placed(half, "permuted", "cuda"), uplo)
        assert not left
        theirs = L.eigvalsh(votive.from_numpy(half), uplo)
        agree(values, theirs, "values", _tolerance(a), scale=1.0)
        agree(alone, theirs, "values alone", _tolerance(a), scale=1.0)
        agree((v * values.unsqueeze(-2)) @ v.mH, votive.from_numpy(a), "v", _tolerance(a), scale=1.0)


@kinds
def test_pseudo_inverses(kind: str) -> None:
    for shape in [(4, 4), (5, 3), (2, 3, 4)]:
        held(L.pinv, _matrix(*shape, kind=kind))
    low = _matrix(4, 2, kind=kind) @ _matrix(2, 4, kind=kind)
    held(lambda a: L.pinv(a, rtol=1e-3), low)
    held(lambda a: L.pinv(a, hermitian=True), _positive(3, 4, 4, kind=kind))
    limits = np.array([0.0, 1.5], _matrix(1, kind=kind).real.dtype)
    held(lambda a, t: L.pinv(a, atol=t), _matrix(3, 3, kind=kind), limits)


@kinds
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd"])
def test_least_squares(kind: str, driver: str) -> None:
    for shape in [(5, 3), (3, 5), (2, 4, 3)]:
        a, b = _matrix(*shape, kind=kind), _matrix(*shape[:-1], 2, kind=kind)
        held(lambda a, b: L.lstsq(a, b, driver=driver), a, b)
    held(lambda a, b: L.lstsq(a, b, driver=driver), a, _matrix(1, 4, 2, kind=kind))
    zero = np.zeros((2, 3, 2), kind)
    zero[0] = _matrix(3, 2, kind=kind)
    if driver != "gelsy":
        held(lambda a, b: L.lstsq(a, b, driver=driver), zero, _matrix(2, 3, 1, kind=kind))


@kinds
def test_exponentials_of_matrices(kind: str) -> None:
    a = _matrix(3, 4, 4, kind=kind) * np.array([0.1, 1, 30])[:, None, None].astype(kind)
    for given in (a[1], a[:2], _matrix(2, 1, 1, kind=kind)):
        held(L.matrix_exp, given)
    held(lambda x: L.matrix_exp(x).abs().log1p(), a)


@kinds
def test_cofactors_exist_for_singular_matrices_too(kind: str) -> None:
    a = _matrix(3, 3, 3, kind=kind)
    a[1, 2] = a[1, 0] + a[1, 1]
    a[2] = 0
    grads = []
    for device in ("cpu", "cuda"):
        x = votive.from_numpy(a).to(device).requires_grad_()
        with cpu_fallbacks() as left:
            L.det(x).sum().abs().backward()
        assert not left
        grads.append(x.grad)
    agree(grads[1], grads[0], "cofactors", _tolerance(a), scale=1.0)


def test_what_is_not_finite_has_no_singular_values() -> None:
    x = votive.tensor([[1.0, float("nan")], [0.0, 1.0]], device="cuda")
    with pytest.raises(LinAlgError, match="not finite"):
        L.svd(x)


def test_gradients_agree_with_the_cpu() -> None:
    a = _positive(2, 4, 4)
    for fn in (L.cholesky, L.inv, L.slogdet, lambda x: L.solve(x, x[..., :2]), L.eigvalsh, L.qr):
        grads = []
        for device in ("cpu", "cuda"):
            x = votive.from_numpy(a).to(device).requires_grad_()
            y = fn(x)
            y = y[1] if isinstance(y, tuple) else y
            (y * y).sum().backward()
            grads.append(x.grad)
        agree(grads[1], grads[0], str(fn), 1e-8, scale=1.0)


def test_the_order_of_rows_follows_the_pivots() -> None:
    a = _matrix(3, 40, 40, kind="float64")
    lu, pivots = L.lu_factor(votive.from_numpy(a))
    held(votive.lu_unpack, lu.numpy(), pivots.numpy())
    bad = votive.tensor([1, 9], dtype=votive.int32, device="cuda")
    with pytest.raises(RuntimeError, match="pivots must lie in"):
        votive.lu_unpack(votive.eye(2, device="cuda"), bad)[0].cpu()


def test_batches_take_one_call(library: Any) -> None:
    if library is None:
        pytest.skip("counts the calls of stand-ins")
    L.inv(votive.from_numpy(_positive(5, 3, 3)).to("cuda"))
    assert library.blas.called == ["DgetrfBatched", "DgetrsBatched"]
    assert not library.solver.called


@pytest.mark.skipif(EMULATED, reason="needs a real GPU")
def test_large_matrices_agree_with_the_cpu() -> None:
    a = _positive(600, 600)
    for fn in (L.cholesky, L.inv, L.slogdet, L.eigvalsh, L.svdvals, L.lu_factor):
        held(fn, a)
    held(L.solve, a, _matrix(600, 7))
    held(L.inv, _positive(3, 600, 600))


@pytest.mark.skipif(EMULATED, reason="needs a real GPU: stand-ins are not recorded")
def test_a_graph_repeats_solutions() -> None:
    a = votive.from_numpy(_positive(3, 5, 5)).to("cuda")

    def solved(b: Any) -> Any:
        low = L.cholesky_ex(a).L
        return votive.cholesky_solve(b, low), L.solve_ex(a, b).result

    given = [votive.from_numpy(_matrix(3, 5, 2)).to("cuda") for _ in range(3)]
    graphed = votive.cuda.make_graphed(solved, (given[0],))
    for b in given:
        theirs = L.solve(a.cpu(), b.cpu())
        for ours in graphed(b):
            agree(ours, theirs, "graph", 1e-10, scale=1.0)


# Two rows are alike, and 1 / 49 * 49 is not 1: factors of the transpose have no zero pivot. Those
# of the matrix do, also where the library multiplies by 1 / pivot instead of dividing.
SINGULAR = [[1.0, 0.0, 0.0], [5.0, 49.0, 1.0], [5.0, 49.0, 1.0]]


def test_nothing_to_solve_for_and_nothing_to_reflect_stay_on_the_gpu(library: Any) -> None:
    a = np.array([np.eye(3), SINGULAR])
    with cpu_fallbacks() as left:
        x, info = votive.linalg.solve_ex(_on_gpu(a), votive.empty(2, 3, 0, device="cuda").double())
        q = votive.orgqr(_on_gpu(a[0]), votive.empty(0, device="cuda").double())
    assert not left
    assert x.shape == (2, 3, 0)
    assert info.cpu().tolist() == [0, 3]
    np.testing.assert_array_equal(q.cpu().numpy(), np.eye(3))


@kinds
@pytest.mark.parametrize("batch", [(), (1,), (2,), (2, 1)])
def test_a_matrix_with_two_rows_alike_is_singular_as_on_the_cpu(kind: str, batch: tuple[int, ...]) -> None:
    a = np.broadcast_to(np.array(SINGULAR, kind), (*batch, 3, 3)).copy()
    if batch and batch[0] > 1:
        a[0] = np.eye(3)
    codes = np.where(a[..., 0, 0] == a[..., 1, 1], 0, 3).tolist()
    x = _on_gpu(a)
    with cpu_fallbacks() as left:
        for columns in (0, 2):
            b = votive.ones(*batch, 3, columns, device="cuda", dtype=x.dtype)
            assert L.solve_ex(x, b).info.cpu().tolist() == codes
        assert L.inv_ex(x).info.cpu().tolist() == codes
        assert L.lu_factor_ex(x).info.cpu().tolist() == codes
        found = L.det(x).cpu().numpy(), L.slogdet(x).logabsdet.cpu().numpy()
    assert not left
    zero = np.array(codes) == 3
    assert (found[0][zero] == 0).all()
    assert np.isneginf(found[1][zero]).all()
    with pytest.raises(LinAlgError):
        L.solve(x, votive.ones(*batch, 3, 1, device="cuda", dtype=x.dtype))


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0)])
def test_no_matrices_and_matrices_of_nothing_have_the_info_of_the_cpu(shape: tuple[int, ...]) -> None:
    a = np.zeros(shape)
    b = votive.zeros(*shape[:-1], 2, dtype=votive.float64)
    for fn in (
        L.inv_ex,
        L.lu_factor_ex,
        L.cholesky_ex,
        L.ldl_factor_ex,
        lambda a: L.solve_ex(a, b.to(a)),
        lambda a: L.solve_triangular(a, b.to(a), upper=True),
        lambda a: L.lstsq(a, b.to(a)),
    ):
        theirs, ours = fn(votive.from_numpy(a)), fn(_on_gpu(a))
        pairs = [(ours, theirs)] if isinstance(theirs, votive.Tensor) else zip(ours, theirs)
        for x, y in pairs:
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            assert x.cpu().tolist() == y.tolist()


def _on_gpu(a: np.ndarray[Any, Any]) -> Any:
    return votive.from_numpy(np.array(a)).to("cuda")
