"""Sums, means and the largest row of each bag, on native kernels."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from .rows import OUT, native

_TABLES = (dt.float32, dt.float64, *dt.HALF)


@native("_bag", "bag", accepts=lambda weight, *rest: weight.dtype in _TABLES)
def bag(
    weight: Slot,
    indices: Slot,
    offsets: Slot,
    factors: Slot | None,
    mean: bool,
    padding: int,
    by_frequency: bool,
    ends: bool,
) -> Any:
    return OUT, weight, indices, offsets, factors, int(mean), padding


@native("_bag_argmax", "bag_argmax", accepts=lambda weight, *rest: weight.dtype in _TABLES)
def bag_argmax(weight: Slot, indices: Slot, bags: Slot, count: int) -> Any:
    return OUT, weight, indices, bags
