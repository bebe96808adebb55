"""Pseudo-inverses and least squares by LAPACK through NumPy. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .linalg_svd import svd
from .linalg_triangular import substitute


def _adjoint(x: Array) -> Any:
    return np.swapaxes(x, -2, -1).conj()


@kernel("_pinv")
def pinv(a: Array, atol: Array, rtol: Array, hermitian: bool) -> Array:
    if hermitian:
        values, u = np.linalg.eigh(a)
        vh = _adjoint(u)
    else:
        u, values, vh = svd(a, False, True)
    size = np.abs(values)
    largest = size.max(axis=-1, keepdims=True, initial=0)
    keep = size > np.maximum(atol[..., None], rtol[..., None] * largest)
    inverse = np.where(keep, 1 / np.where(keep, values, 1), 0)
    return (_adjoint(vh) * inverse[..., None, :]) @ _adjoint(u)


def _by_triangle(a: Array, b: Array) -> tuple[Any, Any]:
    """Full rank taken for granted: QR of A, or of its adjoint if it is wide; where that fails."""
    m, n = a.shape[-2:]
    q, r = np.linalg.qr(a if m >= n else _adjoint(a))
    if m >= n:
        x = substitute(r, _adjoint(q) @ b, True, False)
    else:
        x = q @ substitute(_adjoint(r), b, False, False)
    sizes = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    largest = sizes.max(axis=-1, keepdims=True, initial=0)
    info = (sizes <= np.finfo(a.dtype).eps * largest).any(axis=-1)
    # LAPACK's gels answers 0 for a matrix of zeros, instead of finding fault with it.
    zero = np.asarray(~a.any(axis=(-2, -1)))
    return np.where(zero[..., None, None], 0, x), info & ~zero


def _leading_columns(a: Array, rcond: float) -> Any:
    """An orthonormal basis of the columns that a pivoted QR takes before `rcond` is undercut."""
    left = a.copy()
    chosen: list[int] = []
    basis = a[:, :0]
    while len(chosen) < min(a.shape):
        best = int(np.linalg.norm(left, axis=0).argmax())
        sizes = np.linalg.svd(a[:, [*chosen, best]], compute_uv=False)
        if sizes[-1] <= rcond * sizes[0]:
            break
        chosen.append(best)
        basis = np.linalg.qr(a[:, chosen])[0]
        left = a - basis @ (_adjoint(basis) @ a)
    return basis


@kernel("_lstsq")
def lstsq(a: Array, b: Array, rcond: float, driver: str) -> tuple[Any, Any, Any, Any]:
    *batch, m, n = a.shape
    k = min(m, n)
    if driver == "gels":
        x, info = _by_triangle(a, b)
        return x, np.full(batch, k), np.zeros((*batch, k)), info
    if rcond < 0:
        rcond = float(np.finfo(a.dtype).eps)
    u, s, vh = svd(a, False, True)
    rank = (s > rcond * s.max(axis=-1, keepdims=True, initial=0)).sum(axis=-1)
    poor = np.argwhere(rank < k) if driver == "gelsy" else ()
    if len(poor):
        # gelsy drops the columns that come last in a pivoted QR, not the smallest singular values.
        a, rank = a.copy(), np.array(rank)
        for i in map(tuple, poor):
            basis = _leading_columns(a[i], rcond)
            a[i], rank[i] = basis @ (_adjoint(basis) @ a[i]), basis.shape[-1]
        u, s, vh = svd(a, False, True)
    keep = np.arange(k) < rank[..., None]
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0)
    return _adjoint(vh) @ (inverse[..., None] * (_adjoint(u) @ b)), rank, s, np.zeros(batch)
