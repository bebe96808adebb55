"""Dropout on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import first_float
from .rows import OUT, native


@native("_dropout", "dropout", accepts=first_float)
def dropout(x: Slot, key: Slot, counter: Slot, p: float) -> Args:
    return x, OUT, key, counter, float(p)
