"""Choosing by truth on NumPy. Knows arrays, no gradients."""

from __future__ import annotations

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array
from .index import start


@kernel("_masked_select", widen=False)
def masked_select(x: Array, mask: Array) -> Array:
    return x[mask]


@kernel("_masked_scatter", into=True, widen=False)
def masked_scatter(x: Array, mask: Array, source: Array, out: Array) -> None:
    n = np.count_nonzero(mask)
    if source.size < n:
        fail(
            RuntimeError,
            "masked_scatter",
            f"source has {source.size} elements, fewer than the {n} true values of the mask.",
        )
    values = source.reshape(-1)[:n]
    if np.may_share_memory(values, out):
        values = values.copy()
    start(x, out)
    out[mask] = values


@kernel("_nonzero", widen=False)
def nonzero(x: Array) -> Array:
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.stack(np.nonzero(x)).astype(np.int64, copy=False)
