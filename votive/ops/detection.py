"""What detectors need of a device: which boxes survive, and where a region's maxima are.

Both answers are indices or truth values and have no gradient; what is built of them has.
"""

from __future__ import annotations

from ..core import dtype as dt
from .registry import structured

structured(
    "_survivors(Tensor boxes, Tensor group, float iou_threshold)",
    infer=lambda boxes, group, threshold: boxes.like(boxes.shape[:1], dt.bool_),
    method=False, namespaces=(), out=False, differentiable=False,
    doc="Of (N, 4) corner boxes, best first: those no better survivor of the same group covers.",
)  # fmt: skip

structured(
    "_region_argmax(Tensor input, Tensor image, Tensor top, Tensor bottom, Tensor left, "
    "Tensor right)",
    infer=lambda x, image, top, bottom, left, right: x.like(
        (image.shape[0], x.shape[1], top.shape[1], left.shape[1]), dt.int64
    ),
    method=False, namespaces=(), out=False, differentiable=False,
    doc="For each region and bin the place in (H, W) of the largest element, -1 in empty bins.",
)  # fmt: skip
