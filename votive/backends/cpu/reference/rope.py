"""Rotary position embedding on NumPy. Half types arrive as float32."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_rope")
def rope(x: Array, cos: Array, sin: Array, offset: int, interleaved: bool) -> Array:
    rows = slice(offset, offset + x.shape[-2])
    cos, sin = cos[..., rows, :], sin[..., rows, :]
    angles = cos.shape[-1]
    first, second = (
        (slice(0, 2 * angles, 2), slice(1, 2 * angles, 2))
        if interleaved
        else (slice(0, angles), slice(angles, 2 * angles))
    )
    a, b = x[..., first], x[..., second]
    out = np.array(x)
    out[..., first] = a * cos - b * sin
    out[..., second] = b * cos + a * sin
    return out
