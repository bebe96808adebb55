"""Echoes that come back, natively."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float
from .rows import OUT, native


@native("_delay_feedback", "delay_feedback", accepts=first_float, optional=True)
def delay_feedback(x: Slot, gain: Slot, lag: Slot, transposed: bool) -> Args:
    return x, gain, lag, OUT, int(transposed)
