"""Singular values by LAPACK through NumPy. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.errors import LinAlgError, fail
from ...base import kernel
from ..arrays import Array


@kernel("_svd")
def svd(a: Array, full: bool, vectors: bool) -> tuple[Any, Any, Any]:
    none = np.empty(0)
    try:
        if vectors:
            u, s, vh = np.linalg.svd(a, full_matrices=full)
            return u, s, vh
        return none, np.linalg.svd(a, compute_uv=False), none
    except np.linalg.LinAlgError:
        why = "" if np.isfinite(a).all() else ": the matrix has elements that are not finite"
        fail(LinAlgError, "linalg.svd", f"the iteration did not converge{why}.")
