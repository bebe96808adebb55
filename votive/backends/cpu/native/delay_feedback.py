"""Echoes that come back, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native


@native(
    "_delay_feedback",
    "delay_feedback",
    accepts=lambda x, gain, lag: x.dtype in (dt.float32, dt.float64, *dt.HALF),
    optional=True,
)
def delay_feedback(x: Any, gain: Any, lag: Any, transposed: bool) -> Any:
    return x, gain, lag, OUT, int(transposed)
