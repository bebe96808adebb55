"""Linear filters, sample by sample. Knows arrays only."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_lfilter")
def lfilter(x: Array, a: Array, b: Array, reverse: bool) -> Array:
    order = slice(None, None, -1 if reverse else 1)
    # Feedback carries rounding on, so it is computed in float64; time comes first.
    x = np.moveaxis(x, 2, 0)[order].astype(np.float64)  # (time, batch, channel)
    a, b = (t.T.astype(np.float64)[:, None] for t in (a, b))  # (order, 1, channel)
    y = np.zeros_like(x)
    for k in range(min(len(b), len(x))):
        y[k:] += b[k] * x[: len(x) - k]
    back = len(a) - 1
    if np.any(a[1:]):
        flipped = a[:0:-1]
        for n in range(1, len(y)):
            m = min(n, back)
            y[n] -= (flipped[back - m :] * y[n - m : n]).sum(0)
    return np.moveaxis(y[order], 0, 2)


@kernel("_lag_products")
def lag_products(g: Array, x: Array, taps: int, reverse: bool) -> Array:
    early, late = (g, x) if reverse else (x, g)
    out = np.zeros((x.shape[1], taps), np.float64)
    n = x.shape[2]
    for k in range(min(taps, n)):
        out[:, k] = np.einsum("bcn,bcn->c", late[..., k:], early[..., : n - k], dtype=np.float64)
    return out
