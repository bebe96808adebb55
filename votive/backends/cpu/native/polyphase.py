"""Resampling by a filter for each phase, natively."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import same_float
from .rows import OUT, native


@native("_polyphase", "polyphase", accepts=same_float, optional=True)
def polyphase(x: Slot, kernel: Slot, orig: int, offset: int, length: int) -> Args:
    return x, kernel, OUT, orig, offset


@native("_polyphase_transposed", "polyphase_transposed", accepts=same_float, optional=True)
def polyphase_transposed(g: Slot, kernel: Slot, orig: int, offset: int, length: int) -> Args:
    return g, kernel, OUT, orig, offset


@native("_polyphase_products", "polyphase_products", accepts=same_float, optional=True)
def polyphase_products(g: Slot, x: Slot, orig: int, offset: int, new: int, taps: int) -> Args:
    return g, x, OUT, orig, offset
