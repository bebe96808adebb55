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
