"""Eigenvalues by LAPACK through NumPy. Knows arrays only."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ....core.errors import LinAlgError, fail
from ...base import kernel
from ..arrays import Array

_NONE = np.empty(0)


@kernel("_eigh")
def eigh(a: Array, uplo: Literal["L", "U"], vectors: bool) -> tuple[Any, Any]:
    try:
        if vectors:
            values, found = np.linalg.eigh(a, UPLO=uplo)
            return values, found
        return np.linalg.eigvalsh(a, UPLO=uplo), _NONE
    except np.linalg.LinAlgError:
        fail(LinAlgError, "linalg.eigh", "the iteration did not converge.")


@kernel("_eig")
def eig(a: Array, vectors: bool) -> tuple[Any, Any]:
    finite = np.asarray(np.isfinite(a).all(axis=(-2, -1)))
    if vectors and not finite.all():
        fail(RuntimeError, "linalg.eig", "the matrix has elements that are not finite.")
    try:
        if vectors:
            values, found = np.linalg.eig(a)
            return values, found
        values = np.linalg.eigvals(np.where(finite[..., None, None], a, 0))
        return np.where(finite[..., None], values, np.nan), _NONE
    except np.linalg.LinAlgError:
        fail(LinAlgError, "linalg.eig", "the iteration did not converge.")
