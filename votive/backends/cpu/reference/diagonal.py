"""Triangles of matrices."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("tril", widen=False)
def tril(x: Array, diagonal: int) -> Array:
    return np.tril(x, diagonal)


@kernel("triu", widen=False)
def triu(x: Array, diagonal: int) -> Array:
    return np.triu(x, diagonal)
