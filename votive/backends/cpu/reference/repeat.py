"""Indices that repeat elements."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_interleave_indices")
def interleave_indices(repeats: Array, output_size: int | None) -> Array:
    if (repeats < 0).any():
        raise RuntimeError("repeat_interleave: repeats must not be negative.")
    out = np.repeat(np.arange(repeats.size, dtype=repeats.dtype), repeats)
    if output_size not in (None, out.size):
        raise RuntimeError(f"repeat_interleave: output_size must be {out.size}, got {output_size}.")
    return out
