"""Joining arrays."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("cat", into=True, widen=False)
def cat(tensors: list[Array], dim: int, out: Array) -> None:
    start = 0
    for x in tensors:
        if x.shape == (0,):
            continue
        end = start + x.shape[dim]
        part = out[(slice(None),) * dim + (slice(start, end),)]
        np.copyto(part, x, casting="unsafe")
        start = end


@kernel("stack", into=True, widen=False)
def stack(tensors: list[Array], dim: int, out: Array) -> None:
    for i, x in enumerate(tensors):
        np.copyto(out[(slice(None),) * dim + (i, ...)], x, casting="unsafe")
