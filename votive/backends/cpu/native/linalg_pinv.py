"""Pseudo-inverses of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

import numpy as np

from ....core.layout import Spec
from ...base import kernel
from ..arrays import Array
from ..reference.linalg_pinv import pinv as by_lapack
from . import linalg_svd
from .loader import module


def _small(a: Spec, atol: Spec, rtol: Spec) -> bool:
    return linalg_svd.small(a) and atol.ndim == rtol.ndim == 0 and atol.dtype is rtol.dtype is a.dtype


if module is not None and module.has_kernel("pinv") and module.has_kernel("svd"):
    _pinv = module.Kernel("pinv")

    @kernel("_pinv", priority=10, widen=False, label="native", accepts=_small)
    def pinv(a: Array, atol: Array, rtol: Array, hermitian: bool) -> Array:
        if hermitian:
            return by_lapack(a, atol, rtol, hermitian)
        u, s, vh = map(np.ascontiguousarray, linalg_svd.by_rotations(a, True))
        out = np.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
        _pinv(u, s, vh, out, float(atol), float(rtol))
        return out
