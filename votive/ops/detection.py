"""What detectors need of a device: which boxes survive, a region's maxima, and its weighted sums.

Survivors and maxima are truth values and indices and have no gradient; what is built of them has.
Weighted sums are linear in the features, and their gradient is their transpose.
"""

from __future__ import annotations

from ..core import dtype as dt
from .registry import F, structured

structured(
    "_survivors(Tensor boxes, Tensor group, float iou_threshold)",
    infer=lambda boxes, group, threshold: boxes.like(boxes.shape[:1], dt.bool_),
    differentiable=False,
    doc="Of (N, 4) corner boxes, best first: those no better survivor of the same group covers.",
)

structured(
    "_region_argmax(Tensor input, Tensor image, Tensor top, Tensor bottom, Tensor left, Tensor right)",
    infer=lambda x, image, top, bottom, left, right: x.like(
        (image.shape[0], x.shape[1], top.shape[1], left.shape[1]), dt.int64
    ),
    differentiable=False,
    doc="For each region and bin the place in (H, W) of the largest element, -1 in empty bins.",
)

structured(
    "_region_sums(Tensor input, Tensor image, Tensor by_row, Tensor by_column)",
    infer=lambda x, image, by_row, by_column: x.like((image.shape[0], x.shape[1], by_row.shape[1], by_column.shape[1])),
    grad={"input": lambda c, g: F._region_sums_transpose(g, c.image, c.by_row, c.by_column, c.shape("input")[0])},
    doc="Rows x features x columns of each region k: by_row[k] @ input[image[k]] @ by_column[k].T.",
)

structured(
    "_region_sums_transpose(Tensor grad, Tensor image, Tensor by_row, Tensor by_column, int batch)",
    infer=lambda g, image, by_row, by_column, batch: g.like((batch, g.shape[1], by_row.shape[2], by_column.shape[2])),
    grad={"grad": lambda c, g: F._region_sums(g, c.image, c.by_row, c.by_column)},
    doc="The transpose of `_region_sums`: every sum given back to the features it was made of.",
)
