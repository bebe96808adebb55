"""Two linear layers with an activation between them, with NumPy. Rounds as operators would."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .matmul import linear
from .matmul_activation import _ACTIVATIONS


@kernel("_feed_forward", widen=False)
def feed_forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, activation: str) -> Any:
    kind = x.dtype
    wide = np.dtype(np.float64 if kind == np.float64 else np.float32)
    x, w1, b1, w2, b2 = (None if t is None else t.astype(wide) for t in (x, w1, b1, w2, b2))
    before = np.asarray(linear(x, w1, b1)).astype(kind)
    after = np.asarray(_ACTIVATIONS[activation](before.astype(wide))).astype(kind)
    y = np.asarray(linear(after.astype(wide), w2, b2)).astype(kind)
    return y, np.empty(0, kind) if activation == "relu" else before, after
