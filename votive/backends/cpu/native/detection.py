"""Suppression of boxes and maxima of regions, natively."""

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
