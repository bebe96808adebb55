"""Determinants and cofactors. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .linalg_lu import determinant
from .linalg_solve import inv


@kernel("_det")
def det(a: Array) -> Array:
    return determinant(a)


@kernel("_slogdet")
def slogdet(a: Array) -> tuple[Any, Any]:
    return np.linalg.slogdet(a)


def by_singular_values(a: Array) -> Any:
    """`det U det V^H  U* diag(products of all other singular values) V^T`, right for any rank."""
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(axis=-1)
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return phase * ((u.conj() * others[..., None, :]) @ vh.conj())


@kernel("_cofactor")
def cofactor(a: Array) -> Array:
    inverse, _ = inv(a)
    out = determinant(a)[..., None, None] * np.swapaxes(inverse, -2, -1)
    # With less than half of the digits right the two do not fit together any more.
    sizes = [np.abs(x).sum(axis=-2).max(axis=-1, initial=0) for x in (a, inverse)]
    poor = ~(sizes[0] * sizes[1] < np.finfo(a.dtype).eps ** -0.5)
    poor &= np.isfinite(a).all(axis=(-2, -1))
    out[poor] = by_singular_values(a[poor])
    return out
