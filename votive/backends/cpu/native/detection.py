"""Suppression of boxes, maxima and sums of regions, natively."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args
from .rows import OUT, native


def _first_is_float(x: Spec, *rest: Spec) -> bool:
    return x.dtype in (dt.float32, dt.float64)


@native("_survivors", "survivors", accepts=_first_is_float, optional=True)
def survivors(boxes: Slot, group: Slot, iou_threshold: float) -> Args:
    return boxes, group, OUT, float(iou_threshold)


@native("_region_argmax", "region_argmax", accepts=_first_is_float, optional=True)
def region_argmax(x: Slot, image: Slot, top: Slot, bottom: Slot, left: Slot, right: Slot) -> Args:
    return x, image, top, bottom, left, right, OUT


def _all_one_float(x: Spec, image: Spec, by_row: Spec, by_column: Spec) -> bool:
    return _first_is_float(x) and x.dtype is by_row.dtype is by_column.dtype


@native("_region_sums", "region_sums", accepts=_all_one_float, optional=True)
def region_sums(x: Slot, image: Slot, by_row: Slot, by_column: Slot) -> Args:
    plain = image.contiguous and by_row.contiguous and by_column.contiguous
    return (x, image, by_row, by_column, OUT) if plain else None


@native("_region_sums_transpose", "region_sums_transpose", accepts=_all_one_float, optional=True)
def region_sums_transpose(g: Slot, image: Slot, by_row: Slot, by_column: Slot, batch: int) -> Args:
    plain = image.contiguous and by_row.contiguous and by_column.contiguous
    return (g, image, by_row, by_column, OUT) if plain else None
