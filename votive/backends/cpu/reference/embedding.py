"""Rows of a table on NumPy: reading them, adding into them, and the largest of each bag."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .index import bounded


@kernel("_embedding", widen=False)
def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    at = bounded("embedding", indices, weight.shape[0], 0, IndexError)
    return np.take(weight, at, axis=0)


def _starts(groups: Any) -> Any:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))


@kernel("_embedding_backward")
def embedding_backward(g: Any, indices: Any, rows: int) -> Any:
    out = np.zeros((rows, g.shape[-1]), g.dtype)
    if indices.size:
        at = indices.reshape(-1)
        order = np.argsort(at, kind="stable")
        at, g = at[order], g.reshape(at.size, g.shape[-1])[order]
        first = _starts(at)
        out[at[first]] = np.add.reduceat(g, first, axis=0)
    return out


@kernel("_bag_argmax")
def bag_argmax(weight: Any, indices: Any, bags: Any, count: int) -> Any:
    out = np.full((count, weight.shape[1]), -1, np.int64)
    if indices.size:
        rows = weight[indices]
        first = _starts(bags)
        which = bags[first]
        largest = np.fmax.reduceat(rows, first, axis=0)
        runs = np.diff(first, append=len(bags))
        places = np.arange(len(bags))[:, None]
        # Of equal values the first counts. Nothing is larger than NaN, so one that comes first stays.
        place = np.where(rows == np.repeat(largest, runs, axis=0), places, len(bags))
        place = np.minimum.reduceat(place, first, axis=0)
        place = np.where(np.isnan(rows[first]), first[:, None], place)
        out[which] = indices[place]
    return out
