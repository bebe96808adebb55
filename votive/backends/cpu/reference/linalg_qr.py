"""QR factors by LAPACK through NumPy, and Householder reflectors. Knows arrays only."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_qr")
def qr(a: Array, mode: Literal["reduced", "complete", "r"]) -> tuple[Any, Any]:
    if mode == "r":
        return np.empty(0), np.linalg.qr(a, mode="r")
    q, r = np.linalg.qr(a, mode=mode)
    return q, r


@kernel("_geqrf")
def geqrf(a: Array) -> tuple[Any, Any]:
    packed, tau = np.linalg.qr(a, mode="raw")
    return np.swapaxes(packed, -2, -1), tau


@kernel("_reflect")
def reflect(v: Array, tau: Array, x: Array, back: bool) -> Array:
    k = tau.shape[-1]
    x = x.copy()
    for i in range(k) if back else reversed(range(k)):
        w = v[..., i:, i, None].copy()
        w[..., 0, :] = 1
        factor = tau[..., i, None, None].conj() if back else tau[..., i, None, None]
        rows = x[..., i:, :]
        rows -= factor * (w @ (np.swapaxes(w, -2, -1).conj() @ rows))
    return x
