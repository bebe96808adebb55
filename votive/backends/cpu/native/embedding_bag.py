"""Sums, means and the largest row of each bag, on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ..arrays import Args
from .dtypes import FLOATS
from .rows import OUT, native


@native("_bag", "bag", accepts=lambda weight, *rest: weight.dtype in FLOATS)
def bag(
    weight: Slot,
    indices: Slot,
    offsets: Slot,
    factors: Slot | None,
    mean: bool,
    padding: int,
    by_frequency: bool,
    ends: bool,
) -> Args:
    return OUT, weight, indices, offsets, factors, int(mean), padding


@native("_bag_argmax", "bag_argmax", accepts=lambda weight, *rest: weight.dtype in FLOATS)
def bag_argmax(weight: Slot, indices: Slot, bags: Slot, count: int) -> Args:
    return OUT, weight, indices, bags
