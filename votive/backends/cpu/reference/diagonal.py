"""Triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


@kernel("tril", widen=False)
def tril(x: Any, diagonal: int) -> Any:
    return np.tril(x, diagonal)


@kernel("triu", widen=False)
def triu(x: Any, diagonal: int) -> Any:
    return np.triu(x, diagonal)
