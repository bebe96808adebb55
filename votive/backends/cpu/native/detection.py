"""Suppression of boxes, maxima and sums of regions, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native


def _first_is_float(x: Any, *rest: Any) -> bool:
    return x.dtype in (dt.float32, dt.float64)


@native("_survivors", "survivors", accepts=_first_is_float, optional=True)
def survivors(boxes: Any, group: Any, iou_threshold: float) -> Any:
    return boxes, group, OUT, float(iou_threshold)


@native("_region_argmax", "region_argmax", accepts=_first_is_float, optional=True)
def region_argmax(x: Any, image: Any, top: Any, bottom: Any, left: Any, right: Any) -> Any:
    return x, image, top, bottom, left, right, OUT


def _all_one_float(x: Any, image: Any, by_row: Any, by_column: Any) -> bool:
    return _first_is_float(x) and x.dtype is by_row.dtype is by_column.dtype


@native("_region_sums", "region_sums", accepts=_all_one_float, optional=True)
def region_sums(x: Any, image: Any, by_row: Any, by_column: Any) -> Any:
    plain = image.contiguous and by_row.contiguous and by_column.contiguous
    return (x, image, by_row, by_column, OUT) if plain else None


@native("_region_sums_transpose", "region_sums_transpose", accepts=_all_one_float, optional=True)
def region_sums_transpose(g: Any, image: Any, by_row: Any, by_column: Any, batch: int) -> Any:
    plain = image.contiguous and by_row.contiguous and by_column.contiguous
    return (g, image, by_row, by_column, OUT) if plain else None
