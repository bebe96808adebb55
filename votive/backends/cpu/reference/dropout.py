"""Dropout on NumPy: the mask is drawn by the rule of bernoulli in `common/sampling.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.sampling import bernoulli
from ..arrays import Array, Ints


def noise(key: int, counter: int, shape: Ints, p: float, dtype: np.dtype[Any]) -> Any:
    """`1 / (1 - p)` with chance `1 - p`, else 0; all zeros for p = 1."""
    kept = bernoulli(key, counter, shape, 1 - p, np.bool_)
    return np.where(kept, dtype.type(1 / (1 - p) if p < 1 else 0), dtype.type(0))


@kernel("_dropout")
def dropout(x: Array, key: int, counter: int, p: float) -> Array:
    return x * noise(key, counter, x.shape, p, x.dtype)
