"""Overwriting memory with one value."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ...common.assign import assign
from ..arrays import Array


@kernel("_fill", into=True, widen=False)
def fill(x: Array, value: Array | complex, out: Array) -> None:
    assign(out, np.asarray(value))
