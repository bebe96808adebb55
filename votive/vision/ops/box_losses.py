"""Losses between predicted and true boxes, pair by pair. Differentiable in both."""

from __future__ import annotations

import math

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from .focal_loss import reduced

Sides = tuple[Tensor, ...]  # x1, y1, x2, y2


def _sides(boxes1: Tensor, boxes2: Tensor) -> tuple[Sides, Sides]:
    """Both sets as four coordinates each, in a type that does not overflow."""
    first, second = (b if b.dtype in (dt.float32, dt.float64) else b.float() for b in (boxes1, boxes2))
    return F.unbind(first, -1), F.unbind(second, -1)


def _overlap(a: Sides, b: Sides) -> tuple[Tensor, Tensor]:
    """Intersection and union of each pair; a pair that only touches has no gradient to share."""
    wide = F.minimum(a[2], b[2]) - F.maximum(a[0], b[0])
    high = F.minimum(a[3], b[3]) - F.maximum(a[1], b[1])
    inter = F.where(F.logical_and(wide > 0, high > 0), wide * high, 0.0)
    areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return inter, areas - inter


def _hull(a: Sides, b: Sides) -> tuple[Tensor, Tensor]:
    """Width and height of the smallest box around each pair."""
    wide = F.maximum(a[2], b[2]) - F.minimum(a[0], b[0])
    return wide, F.maximum(a[3], b[3]) - F.minimum(a[1], b[1])


def _distance(a: Sides, b: Sides, eps: float) -> tuple[Tensor, Tensor]:
    inter, union = _overlap(a, b)
    iou = inter / (union + eps)
    wide, high = _hull(a, b)
    apart = ((a[0] + a[2] - b[0] - b[2]) / 2) ** 2 + ((a[1] + a[3] - b[1] - b[3]) / 2) ** 2
    return 1 - iou + apart / (wide**2 + high**2 + eps), iou


def generalized_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the generalized IoU of corresponding (x1, y1, x2, y2) boxes.

    >>> a, b = votive.tensor([[0.0, 0, 1, 1]]), votive.tensor([[3.0, 0, 4, 1]])
    >>> votive.vision.ops.generalized_box_iou_loss(a, b)
    tensor([1.5000])
    """
    a, b = _sides(boxes1, boxes2)
    inter, union = _overlap(a, b)
    wide, high = _hull(a, b)
    hull = wide * high
    loss = 1 - inter / (union + eps) + (hull - union) / (hull + eps)
    return reduced("generalized_box_iou_loss", loss, reduction)


def distance_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the distance IoU of corresponding boxes.

    >>> a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[1.0, 0, 3, 2]])
    >>> votive.vision.ops.distance_box_iou_loss(a, b)
    tensor([0.7436])
    """
    a, b = _sides(boxes1, boxes2)
    return reduced("distance_box_iou_loss", _distance(a, b, eps)[0], reduction)


def complete_box_iou_loss(boxes1: Tensor, boxes2: Tensor, reduction: str = "none", eps: float = 1e-7) -> Tensor:
    """1 less the complete IoU of corresponding boxes.

    >>> a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[0.0, 0, 2, 1]])
    >>> votive.vision.ops.complete_box_iou_loss(a, b)
    tensor([0.5345])
    """
    a, b = _sides(boxes1, boxes2)
    loss, iou = _distance(a, b, 1e-7)  # torchvision's inner eps is fixed
    shapes = (F.atan((s[2] - s[0]) / (s[3] - s[1])) for s in (b, a))
    v = 4 / math.pi**2 * (next(shapes) - next(shapes)) ** 2
    alpha = (v / (1 - iou + v + eps)).detach()
    return reduced("complete_box_iou_loss", loss + alpha * v, reduction)
