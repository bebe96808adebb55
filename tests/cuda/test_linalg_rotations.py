"""Singular values and eigenvalues of small matrices, found by rotations: for any rank, shape and scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core.errors import LinAlgError

from .device import EMULATED, agree, cpu_fallbacks, normal, placed

RNG = np.random.default_rng(29)
L = votive.linalg
kinds = pytest.mark.parametrize("kind", ["float32", "float64"])
SHAPES = [(1, 1), (2, 2), (2, 5, 3), (3, 5), (7, 7), (1, 4)]
SHAPES += [] if EMULATED else [(2, 2, 8, 8), (9, 9), (16, 16), (17, 31), (3, 32, 32), (33, 20), (2, 64, 64), (64, 1)]


def _cases(shape: tuple[int, ...], kind: str) -> dict[str, np.ndarray[Any, Any]]:
    a = normal(RNG, shape, "float64")
    low = a.copy()
    low[..., -1] = low[..., 0]
    even = np.broadcast_to(3 * np.eye(*shape[-2:]), shape)
    steep = a * 10.0 ** -np.arange(shape[-1])
    found = {"any": a, "low rank": low, "zero": 0 * a, "equal values": even, "steep": steep, "small": 1e-30 * a}
    return {k: np.array(v, kind) for k, v in found.items()}


def _close(x: Any, y: np.ndarray[Any, Any], scale: float, kind: str, about: str, units: int = 60) -> None:
    off = np.abs(x.cpu().numpy().astype(np.float64) - y).max(initial=0)
    assert off <= units * np.finfo(kind).eps * scale, (about, off)


def _orthonormal(q: Any, kind: str, about: str) -> None:
    q = q.cpu().numpy().astype(np.float64)
    product = np.swapaxes(q, -2, -1) @ q
    assert np.abs(product - np.eye(q.shape[-1])).max() <= 60 * np.finfo(kind).eps, about


@kinds
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values_and_vectors(kind: str, shape: tuple[int, ...]) -> None:
    k = min(shape[-2:])
    for n, (about, a) in enumerate(_cases(shape, kind).items()):
        theirs = np.linalg.svd(a.astype(np.float64), compute_uv=False)
        scale = float(theirs.max())
        with cpu_fallbacks() as left:
            u, s, vh = L.svd(placed(a, ("", "permuted", "sliced")[n % 3], "cuda"), bool(n % 2))
            alone = L.svdvals(placed(a, "", "cuda"))
        assert not left
        _close(s, theirs, scale, kind, about)
        _close(alone, theirs, scale, kind, about)
        _close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, scale, kind, about)
        _orthonormal(u, kind, about)
        _orthonormal(vh.mT, kind, about)


@kinds
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]], ids=str)
def test_eigenvalues_and_vectors(kind: str, shape: tuple[int, ...]) -> None:
    for n, (about, x) in enumerate(_cases(shape, kind).items()):
        a = x + np.swapaxes(x, -2, -1)
        uplo = "LU"[n % 2]
        half = np.tril(a) if uplo == "L" else np.triu(a)  # the other triangle is not read
        theirs = np.linalg.eigvalsh(a.astype(np.float64))
        scale = float(np.abs(theirs).max())
        with cpu_fallbacks() as left:
            values, v = L.eigh(placed(half, ("", "permuted", "sliced")[n % 3], "cuda"), uplo)
            alone = L.eigvalsh(placed(half, "", "cuda"), uplo)
        assert not left
        # The library, which takes the larger ones, stops its own rotations sooner.
        units = 60 if EMULATED or shape[-1] <= 12 else 200
        _close(values, theirs, scale, kind, about, units)
        _close(alone, theirs, scale, kind, about, units)
        _close((v * values.unsqueeze(-2)) @ v.mT, a, scale, kind, about, units)
        _orthonormal(v, kind, about)


def test_columns_whose_squares_leave_the_range_end() -> None:
    """Lengths down to 1e-31 of the longest one: there is nothing left to make orthogonal."""
    a = (normal(RNG, (12, 12), "float64") * 10.0 ** (-3.0 * np.arange(12))).astype("float32")
    u, s, vh = L.svd(placed(a, "", "cuda"))
    _close((u * s) @ vh, a, float(s.max()), "float32", "short columns")
    _orthonormal(u, "float32", "short columns")
    _orthonormal(vh.mT, "float32", "short columns")


def test_what_is_not_finite_is_told() -> None:
    for bad in (float("nan"), float("inf")):
        x = votive.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, bad], [bad, 1.0]]], device="cuda")
        for fn in (L.svd, L.svdvals, L.eigh, L.eigvalsh):
            with pytest.raises(LinAlgError, match="not finite"):
                fn(x)


def test_gradients_and_what_is_built_of_them() -> None:
    a = normal(RNG, (2, 4, 3), "float64")
    b = normal(RNG, (2, 4, 2), "float64")
    square = a @ np.swapaxes(a, -2, -1) + np.diag([1.0, 2, 3, 4])
    singular = a @ np.ones((3, 3)) @ np.swapaxes(a, -2, -1)  # of rank 1
    for fn, given in (
        (L.svdvals, a),
        (lambda x: L.eigh(x)[1].abs(), square),
        (L.eigvalsh, square),
        (L.pinv, a),
        (lambda x: L.pinv(x, hermitian=True), square),
        (lambda x: L.lstsq(x, votive.from_numpy(b).to(x.device), driver="gelsd").solution, a),
        (L.det, square),
        (L.det, singular),
        (L.matrix_exp, square / 9),
    ):
        values, grads = [], []
        for device in ("cpu", "cuda"):
            x = votive.from_numpy(given).to(device).requires_grad_()
            y = fn(x)
            (y * y + y).sum().backward()
            values.append(y)
            grads.append(x.grad)
        agree(values[1], values[0], str(fn), 1e-9, scale=1.0)
        agree(grads[1], grads[0], str(fn), 1e-8, scale=1.0)
