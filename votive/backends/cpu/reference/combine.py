"""Joining arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


@kernel("cat", into=True, widen=False)
def cat(tensors: Any, dim: int, out: Any) -> None:
    start = 0
    for x in tensors:
        if x.shape == (0,):
            continue
        end = start + x.shape[dim]
        part = out[(slice(None),) * dim + (slice(start, end),)]
        np.copyto(part, x, casting="unsafe")
        start = end


@kernel("stack", into=True, widen=False)
def stack(tensors: Any, dim: int, out: Any) -> None:
    for i, x in enumerate(tensors):
        np.copyto(out[(slice(None),) * dim + (i, ...)], x, casting="unsafe")


@kernel("_split", widen=False)
def split(x: Any, sizes: Any, dim: int) -> Any:
    return [part.copy() for part in np.split(x, np.cumsum(sizes)[:-1], dim)]


@kernel("_unbind", widen=False)
def unbind(x: Any, dim: int) -> Any:
    return [np.take(x, i, dim) for i in range(x.shape[dim])]
