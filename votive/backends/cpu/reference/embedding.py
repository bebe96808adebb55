"""Rows of a table on NumPy: reading them, and adding into them."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array
from .index import bounded


@kernel("_embedding", widen=False)
def embedding(weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    at = bounded("embedding", indices, weight.shape[0], 0, IndexError)
    return np.take(weight, at, axis=0)


def starts(groups: Array) -> Array:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))


@kernel("_embedding_backward")
def embedding_backward(g: Array, indices: Array, rows: int, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    out = np.zeros((rows, g.shape[-1]), g.dtype)
    if indices.size:
        at = indices.reshape(-1)
        order = np.argsort(at, kind="stable")
        at, g = at[order], g.reshape(at.size, g.shape[-1])[order]
        first = starts(at)
        total = np.add.reduceat(g, first, axis=0)
        if scale_grad_by_freq:
            total /= np.diff(first, append=at.size)[:, None].astype(g.dtype)
        out[at[first]] = total
        if padding_idx >= 0:
            out[padding_idx] = 0
    return out
