"""Binary cross entropy of what must be probabilities. Half types arrive as float32."""

from __future__ import annotations

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array


@kernel("_checked_bce")
def checked_bce(x: Array, t: Array) -> Array:
    for name, v in (("input", x), ("target", t)):
        if not ((v >= 0) & (v <= 1)).all():
            fail(RuntimeError, "binary_cross_entropy", f"all elements of {name} must lie between 0 and 1.")
    with np.errstate(divide="ignore"):
        floor = x.dtype.type(-100)
        made: Array = (t - 1) * np.maximum(np.log1p(-x), floor) - t * np.maximum(np.log(x), floor)
    return made
