"""Copies of the pieces of an array."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints


@kernel("_split", widen=False)
def split(x: Array, sizes: Ints, dim: int) -> list[Array]:
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], dim)]


@kernel("_unbind", widen=False)
def unbind(x: Array, dim: int) -> list[Array]:
    return [np.take(x, i, dim) for i in range(x.shape[dim])]
