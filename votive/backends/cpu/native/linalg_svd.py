"""Singular values of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.layout import Spec
from ...base import kernel
from ..arrays import Array
from ..reference.linalg_svd import svd as by_lapack
from .linalg_lu import filled
from .loader import module

LARGEST = 8  # rows and columns


def small(a: Spec) -> bool:
    """Whether rotations are the faster way."""
    return filled(a) and max(a.shape[-2:]) <= LARGEST


if module is not None and module.has_kernel("svd"):
    _svd = module.Kernel("svd")

    def by_rotations(a: Array, vectors: bool) -> tuple[Any, Any, Any]:
        """Values, and vectors whose signs are not LAPACK's."""
        *batch, m, n = a.shape
        k = min(m, n)
        u = vh = np.empty(0, a.dtype)
        if vectors:
            u, vh = np.empty((*batch, m, k), a.dtype), np.empty((*batch, k, n), a.dtype)
        s, failed = np.empty((*batch, k), a.dtype), np.zeros(1, bool)
        _svd(a, u, s, vh, failed)
        return by_lapack(a, False, vectors) if failed[0] else (u, s, vh)

    @kernel("_svd", priority=10, widen=False, label="native", accepts=small)
    def svd(a: Array, full: bool, vectors: bool) -> tuple[Any, Any, Any]:
        # Of vectors users know LAPACK's signs.
        return by_lapack(a, full, vectors) if vectors else by_rotations(a, False)
