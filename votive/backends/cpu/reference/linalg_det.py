"""Determinants and cofactors. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .linalg_lu import determinant

# Below this many roundings a determinant counts as zero and the inverse is not trusted.
SINGULAR = 100


@kernel("_det")
def det(a: Any) -> Any:
    return determinant(a)


@kernel("_slogdet")
def slogdet(a: Any) -> tuple[Any, Any]:
    return np.linalg.slogdet(a)


def _by_singular_values(a: Any) -> Any:
    """`det U det V^H  U* diag(products of all other singular values) V^T`, right for any rank."""
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return phase * ((u.conj() * others[..., None, :]) @ vh.conj())


@kernel("_cofactor")
def cofactor(a: Any) -> Any:
    det = determinant(a)
    regular = np.abs(det) >= SINGULAR * np.finfo(a.dtype).eps
    out = np.empty(a.shape, a.dtype)
    inverse = np.linalg.inv(a[regular])
    out[regular] = det[regular][..., None, None] * np.swapaxes(inverse, -2, -1)
    # NaN is neither regular nor something that has singular values.
    finite = np.isfinite(a).all(axis=(-2, -1))
    out[~regular & finite] = _by_singular_values(a[~regular & finite])
    out[~regular & ~finite] = np.nan
    return out
