"""The largest row of each bag, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .embedding import starts


@kernel("_bag_argmax")
def bag_argmax(weight: Any, indices: Any, bags: Any, count: int) -> Any:
    out = np.full((count, weight.shape[1]), -1, np.int64)
    if indices.size:
        rows = weight[indices]
        first = starts(bags)
        which = bags[first]
        largest = np.fmax.reduceat(rows, first, axis=0)
        runs = np.diff(first, append=len(bags))
        places = np.arange(len(bags))[:, None]
        # Of equal values the first counts; nothing is larger than a NaN that comes first.
        place = np.where(rows == np.repeat(largest, runs, axis=0), places, len(bags))
        place = np.minimum.reduceat(place, first, axis=0)
        place = np.where(np.isnan(rows[first]), first[:, None], place)
        out[which] = indices[place]
    return out
