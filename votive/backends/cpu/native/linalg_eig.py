"""Eigenvalues of small symmetric matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ....core.layout import Spec
from ...base import kernel
from ..arrays import Array
from ..reference.linalg_eig import eigh as by_lapack
from .linalg_lu import filled
from .loader import module

LARGEST = 8  # rows and columns


def _small(a: Spec) -> bool:
    return filled(a) and a.shape[-1] <= LARGEST


if module is not None and module.has_kernel("eigh"):
    _eigh = module.Kernel("eigh")

    @kernel("_eigh", priority=10, widen=False, label="native", accepts=_small)
    def eigh(a: Array, uplo: Literal["L", "U"], vectors: bool) -> tuple[Any, Any]:
        if vectors:
            return by_lapack(a, uplo, vectors)  # whose signs users know
        values, found = np.empty(a.shape[:-1], a.dtype), np.empty(0, a.dtype)
        failed = np.zeros(1, bool)
        _eigh(a, values, found, failed, int(uplo == "U"))
        return by_lapack(a, uplo, vectors) if failed[0] else (values, found)
