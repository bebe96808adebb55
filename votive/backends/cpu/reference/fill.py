"""Overwriting memory with one value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.assign import assign


@kernel("_fill", into=True, widen=False)
def fill(x: Any, value: Any, out: Any) -> None:
    assign(out, np.asarray(value))
