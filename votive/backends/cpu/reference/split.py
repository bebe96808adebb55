"""Copies of the pieces of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


@kernel("_split", widen=False)
def split(x: Any, sizes: Any, dim: int) -> Any:
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], dim)]


@kernel("_unbind", widen=False)
def unbind(x: Any, dim: int) -> Any:
    return [np.take(x, i, dim) for i in range(x.shape[dim])]
