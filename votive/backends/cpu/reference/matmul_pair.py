"""Two linear layers with an activation between them, with NumPy. Rounds as operators would."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array
from .matmul import linear
from .matmul_activation import _ACTIVATIONS


@kernel("_feed_forward", widen=False)
def feed_forward(
    x: Array, w1: Array, b1: Array | None, w2: Array, b2: Array | None, activation: str
) -> tuple[Array, ...]:
    kind = x.dtype
    wide = np.dtype(np.float64 if kind == np.float64 else np.float32)
    b1, b2 = (None if b is None else b.astype(wide) for b in (b1, b2))
    before = np.asarray(linear(x.astype(wide), w1.astype(wide), b1)).astype(kind)
    after = np.asarray(_ACTIVATIONS[activation](before.astype(wide))).astype(kind)
    y = np.asarray(linear(after.astype(wide), w2.astype(wide), b2)).astype(kind)
    return y, np.empty(0, kind) if activation == "relu" else before, after
