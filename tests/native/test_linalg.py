"""Native factors, determinants and solutions hold against the reference in every layout and size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import linalg

from .compare import agree, needs_native, reference_only, served_by_native

pytestmark = needs_native

REAL = [votive.float32, votive.float64]
# Around panels of columns and halves of triangles.
SIZES = [1, 2, 3, 9, 31, 33, 70, 130]


def draw(*shape: int, dtype: Any) -> Any:
    return votive.randn(shape, dtype=votive.float64).to(dtype)


def steady(n: int, dtype: Any, *batch: int) -> Any:
    return draw(*batch, n, n, dtype=dtype) + 3 * n**0.5 * votive.eye(n, dtype=dtype)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("n", SIZES)
def test_systems_agree_with_the_reference(n: int, dtype: Any) -> None:
    for a in (steady(n, dtype), steady(n, dtype, 2, 3), steady(n, dtype, 2).mT, steady(n, dtype, 4)[::2]):
        b = draw(*a.shape[:-1], 5, dtype=dtype)
        for fn in (linalg.det, linalg.inv, linalg.slogdet):
            agree(fn, a * 0.1, rtol=1e-3 if dtype is votive.float32 else 1e-9)
        agree(linalg.solve, a, b)
        agree(linalg.solve, a, b.mT.contiguous().mT)
        for upper in (False, True):
            for unit in (False, True):
                part = a / (3 * n) if unit else a
                agree(lambda a, b, u=upper, q=unit: linalg.solve_triangular(a, b, upper=u, unitriangular=q), part, b)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (7, 3), (3, 7), (40, 33), (33, 70), (2, 3, 20, 20)])
def test_factors_multiply_to_the_matrix(shape: tuple[int, ...], dtype: Any) -> None:
    a = draw(*shape, dtype=dtype)
    for x in (a, a.mT.contiguous().mT):
        p, low, up = linalg.lu(x)
        np.testing.assert_allclose((p @ low @ up).numpy(), x.numpy(), atol=1e-4 if dtype is votive.float32 else 1e-12)
        lu, pivots = linalg.lu_factor(x)
        with reference_only():
            theirs, swaps = linalg.lu_factor(x)
        assert pivots.tolist() == swaps.tolist()
        np.testing.assert_allclose(lu.numpy(), theirs.numpy(), atol=1e-4 if dtype is votive.float32 else 1e-11)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("n", [1, 2, 9, 17, 40])
def test_roots_of_symmetric_matrices_agree(n: int, dtype: Any) -> None:
    a = draw(3, n, n, dtype=dtype)
    a = a @ a.mT + votive.eye(n, dtype=dtype)
    a[1, n - 1, n - 1] = -1.0
    for x in (a[0], a[::2], a.mT[:1], votive.tril(a)[::2]):
        agree(lambda x=x: linalg.cholesky(x), rtol=1e-3 if dtype is votive.float32 else 1e-9)
        agree(lambda x=x: linalg.cholesky(x.mT, upper=True), rtol=1e-3 if dtype is votive.float32 else 1e-9)
    agree(lambda: linalg.cholesky_ex(a), rtol=1e-3)
    assert linalg.cholesky_ex(a)[1].tolist() == [0, n, 0]


def test_one_triangle_serves_many_right_sides() -> None:
    a, b = steady(6, votive.float64), draw(4, 3, 6, 2, dtype=votive.float64)
    agree(lambda: linalg.solve_triangular(a, b, upper=True))
    agree(lambda: linalg.solve(a, b))
    agree(lambda: linalg.solve_triangular(a.expand(3, 6, 6), b[:, :1], upper=False))


def test_singular_matrices_are_told_by_their_pivot() -> None:
    a = votive.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]])
    for fn in (linalg.inv_ex, linalg.lu_factor_ex):
        ours = fn(a)[-1]
        with reference_only():
            assert ours.tolist() == fn(a)[-1].tolist() != 0
    with pytest.raises(RuntimeError, match="singular"):
        linalg.inv(a)
    assert linalg.det(a).item() == 0
    assert linalg.slogdet(a)[0].item() == 0
    assert linalg.slogdet(a)[1].item() == -float("inf")
    assert linalg.det(votive.tensor([[float("nan"), 1.0], [1.0, 2.0]])).isnan()


@pytest.mark.parametrize("dtype", [votive.float64, votive.float32, votive.bfloat16], ids=str)
def test_positions_are_drawn_as_by_the_reference(dtype: Any) -> None:
    for shape, count, again in [((7,), 1, False), ((5, 3), 1, False), ((5, 300), 9, True), ((1, 2), 100, True)]:
        weights = votive.rand(shape, dtype=votive.float64).to(dtype)
        votive.manual_seed(3)
        ours = votive.multinomial(weights, count, again)
        votive.manual_seed(3)
        with reference_only():
            theirs = votive.multinomial(weights, count, again)
        assert ours.tolist() == theirs.tolist()
    for bad in ([0.0, 0.0], [1.0, -1.0], [1.0, float("nan")], [float("inf"), 1.0]):
        with pytest.raises(RuntimeError, match=r"probability|distribution"):
            votive.multinomial(votive.tensor(bad), 1)


def test_native_rows_serve() -> None:
    a, b = steady(3, votive.float32), votive.ones(3, 2)
    calls = {
        "_lu_factor": lambda: linalg.lu_factor(a),
        "_cholesky": lambda: linalg.cholesky(votive.eye(3)),
        "_det": lambda: linalg.det(a),
        "_slogdet": lambda: linalg.slogdet(a),
        "_solve": lambda: linalg.solve(a, b),
        "_inv": lambda: linalg.inv(a),
        "_solve_triangular": lambda: linalg.solve_triangular(a, b, upper=True),
        "_multinomial": lambda: votive.multinomial(b, 1),
    }
    for op, call in calls.items():
        assert served_by_native(op, call), op


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (8, 3), (3, 8), (4, 2, 2), (19, 5, 7), (2, 4, 8, 8), (9, 8, 1)])
def test_rotated_columns_are_singular_vectors(shape: tuple[int, ...], dtype: Any) -> None:
    a = draw(*shape, dtype=dtype)
    low = a.clone()
    low[..., -1] = low[..., 0]
    steep = a * 10.0 ** -votive.arange(shape[-1], dtype=dtype)
    eps = votive.finfo(dtype).eps
    for x in (a, a.mT.contiguous().mT, low, 0 * a, steep, 1e-30 * a):
        assert served_by_native("_svd", lambda x=x: linalg.svd(x, full_matrices=False))
        u, s, vh = linalg.svd(x, full_matrices=False)
        theirs = np.linalg.svd(x.double().numpy(), compute_uv=False)
        near = 60 * eps * float(theirs.max())
        np.testing.assert_allclose(s.double().numpy(), theirs, atol=near, rtol=0)
        np.testing.assert_allclose(linalg.svdvals(x).double().numpy(), theirs, atol=near, rtol=0)
        again = (u * s.unsqueeze(-2)).double() @ vh.double()
        np.testing.assert_allclose(again.numpy(), x.double().numpy(), atol=near, rtol=0)
        for q in (u.double(), vh.double().mT):
            one = np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1]))
            np.testing.assert_allclose((q.mT @ q).numpy(), one, atol=60 * eps, rtol=0)
        assert (s.diff(dim=-1) <= 0).all()
    agree(lambda x: linalg.pinv(x, rtol=1e-3), a, rtol=1e-3 if dtype is votive.float32 else 1e-9)
    agree(lambda x: linalg.pinv(x, atol=0.5), a, rtol=1e-3 if dtype is votive.float32 else 1e-9)
    agree(linalg.pinv, 0 * a)


def test_a_matrix_that_is_not_finite_has_no_singular_values() -> None:
    x = votive.ones(5, 3, 3)
    x[2, 1, 1] = float("nan")
    for fn in (linalg.svd, linalg.svdvals, linalg.pinv):
        with pytest.raises(linalg.LinAlgError, match="not finite"):
            fn(x)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (4, 3, 3), (19, 7, 7), (2, 4, 8, 8)])
def test_rotated_matrices_have_their_eigenvalues_on_the_diagonal(shape: tuple[int, ...], dtype: Any) -> None:
    a = draw(*shape, dtype=dtype)
    low = a.clone()
    low[..., -1] = low[..., 0]
    steep = a * 10.0 ** -votive.arange(shape[-1], dtype=dtype)
    eps = votive.finfo(dtype).eps
    for k, x in enumerate((a, low, 0 * a, steep, 1e-30 * a, votive.eye(shape[-1], dtype=dtype).expand(shape))):
        whole = x + x.mT
        half, uplo = (whole.tril(), "L") if k % 2 else (whole.triu().mT.contiguous().mT, "U")
        assert served_by_native("_eigh", lambda half=half, uplo=uplo: linalg.eigh(half, uplo))
        values, v = linalg.eigh(half, uplo)
        theirs = np.linalg.eigvalsh(whole.double().numpy())
        near = 60 * eps * float(np.abs(theirs).max())
        for found in (values, linalg.eigvalsh(half, uplo)):
            np.testing.assert_allclose(found.double().numpy(), theirs, atol=near, rtol=0)
        again = (v * values.unsqueeze(-2)).double() @ v.double().mT
        np.testing.assert_allclose(again.numpy(), whole.double().numpy(), atol=near, rtol=0)
        one = np.broadcast_to(np.eye(shape[-1]), shape)
        np.testing.assert_allclose((v.double().mT @ v.double()).numpy(), one, atol=60 * eps, rtol=0)
