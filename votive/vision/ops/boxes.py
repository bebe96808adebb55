"""Boxes: formats, areas, overlaps, and the choice of the best ones. Knows no image."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor

_FORMATS = ("xyxy", "xywh", "cxcywh", "xywhr", "cxcywhr", "xyxyxyxy")
_UPRIGHT = _FORMATS[:3]


def upcast(t: Tensor) -> Tensor:
    """In a type whose products do not overflow so soon."""
    if t.dtype.is_floating_point:
        return t if t.dtype in (dt.float32, dt.float64) else t.float()
    return t if t.dtype in (dt.int32, dt.int64) else t.int()


# --- the best of them ----------------------------------------------------------------------------


def _check_nms(op: str, boxes: Tensor, scores: Tensor) -> None:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise ValueError(f"{op}: boxes must have shape (N, 4), got {tuple(boxes.shape)}.")
    if scores.ndim != 1 or scores.shape[0] != boxes.shape[0]:
        raise ValueError(
            f"{op}: scores must have one value for each of the {boxes.shape[0]} boxes, got shape {tuple(scores.shape)}."
        )
    if boxes.dtype is not scores.dtype:
        raise RuntimeError(f"{op}: boxes and scores must have the same dtype, got {boxes.dtype}, {scores.dtype}.")
    if not boxes.dtype.is_floating_point:
        raise NotImplementedError(f"{op}: not implemented for {boxes.dtype}; use .float().")


def _suppressed(op: str, boxes: Tensor, scores: Tensor, group: Tensor, iou_threshold: float) -> Tensor:
    _check_nms(op, boxes, scores)
    boxes, scores = boxes.detach(), scores.detach()
    order = F.argsort(scores, dim=0, descending=True, stable=True)
    return order[F._survivors(boxes[order], group[order], float(iou_threshold))]


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no better kept box overlaps by more than the threshold, best first.

    Boxes are (x1, y1, x2, y2); of equal scores the first counts as better.

    >>> boxes = votive.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [20, 20, 30, 30]])
    >>> votive.vision.ops.nms(boxes, votive.tensor([0.8, 0.9, 0.5]), iou_threshold=0.5)
    tensor([1, 2])
    """
    group = F.zeros((boxes.shape[0],), dtype=dt.int64, device=boxes.device)
    return _suppressed("nms", boxes, scores, group, iou_threshold)


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """`nms` in which only boxes of the same category, by `idxs`, suppress each other.

    >>> boxes = votive.tensor([[0.0, 0, 10, 10], [1, 0, 11, 10], [0, 0, 10, 10]])
    >>> scores = votive.tensor([0.8, 0.9, 0.5])
    >>> votive.vision.ops.batched_nms(boxes, scores, votive.tensor([0, 0, 1]), 0.5)
    tensor([1, 2])
    """
    if tuple(idxs.shape) != tuple(scores.shape):
        raise ValueError(
            f"batched_nms: idxs must have a category for each of the {scores.shape[0]} boxes, got "
            f"shape {tuple(idxs.shape)}."
        )
    # Categories are compared, not shifted apart by large offsets, which would round the boxes.
    return _suppressed("batched_nms", boxes, scores, idxs.long(), iou_threshold)


def remove_small_boxes(boxes: Tensor, min_size: float) -> Tensor:
    """Indices of the (x1, y1, x2, y2) boxes with no side shorter than `min_size`.

    >>> votive.vision.ops.remove_small_boxes(votive.tensor([[0, 0, 1, 9], [0, 0, 5, 5]]), 2)
    tensor([1])
    """
    wide, high = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return F.nonzero(F.logical_and(wide >= min_size, high >= min_size), as_tuple=True)[0]


def clip_boxes_to_image(boxes: Tensor, size: tuple[int, int]) -> Tensor:
    """(x1, y1, x2, y2) boxes cut at the borders of an image of `size` (height, width).

    >>> votive.vision.ops.clip_boxes_to_image(votive.tensor([[-2.0, 1.0, 9.0, 3.0]]), (4, 8))
    tensor([[0., 1., 8., 3.]])
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)
    return F.stack((x, y), boxes.ndim).reshape(tuple(boxes.shape))


# --- formats -------------------------------------------------------------------------------------


def _stacked(*parts: Tensor) -> Tensor:
    return F.stack(parts, -1)


def _xywh_to_xyxy(b: Tensor) -> Tensor:
    x, y, w, h = F.unbind(b, -1)
    return _stacked(x, y, x + w, y + h)


def _xyxy_to_xywh(b: Tensor) -> Tensor:
    x1, y1, x2, y2 = F.unbind(b, -1)
    return _stacked(x1, y1, x2 - x1, y2 - y1)


def _cxcywh_to_xyxy(b: Tensor) -> Tensor:
    cx, cy, w, h = F.unbind(b, -1)
    return _stacked(cx - 0.5 * w, cy - 0.5 * h, cx + 0.5 * w, cy + 0.5 * h)


def _xyxy_to_cxcywh(b: Tensor) -> Tensor:
    x1, y1, x2, y2 = F.unbind(b, -1)
    return _stacked((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1)


def _cos_sin(degrees: Tensor) -> tuple[Tensor, Tensor]:
    angle = degrees * math.pi / 180.0
    return F.cos(angle), F.sin(angle)


def _centre_to_corner(b: Tensor) -> Tensor:
    cx, cy, w, h, r = F.unbind(b, -1)
    cos, sin = _cos_sin(r)
    return _stacked(cx - w / 2 * cos - h / 2 * sin, cy - h / 2 * cos + w / 2 * sin, w, h, r)


def _corner_to_centre(b: Tensor) -> Tensor:
    x, y, w, h, r = F.unbind(b, -1)
    cos, sin = _cos_sin(r)
    return _stacked(x + w / 2 * cos + h / 2 * sin, y - w / 2 * sin + h / 2 * cos, w, h, r)


def _corner_to_four(b: Tensor) -> Tensor:
    x, y, w, h, r = F.unbind(b, -1)
    cos, sin = _cos_sin(r)
    x2, y2 = x + w * cos, y - w * sin
    return _stacked(x, y, x2, y2, x2 + h * sin, y2 + h * cos, x + h * sin, y + h * cos)


def _four_to_corner(b: Tensor) -> Tensor:
    x1, y1, x2, y2, x3, y3, _, _ = F.unbind(b, -1)
    degrees = F.atan2(y1 - y2, x2 - x1) * 180 / math.pi
    w, h = F.sqrt((x2 - x1) ** 2 + (y1 - y2) ** 2), F.sqrt((x3 - x2) ** 2 + (y3 - y2) ** 2)
    return _stacked(x1, y1, w, h, degrees)


# Each family of formats is converted by way of one of them.
_TO_HUB: dict[str, Callable[[Tensor], Tensor] | None] = {
    "xyxy": None,
    "xywh": _xywh_to_xyxy,
    "cxcywh": _cxcywh_to_xyxy,
    "xywhr": None,
    "cxcywhr": _centre_to_corner,
    "xyxyxyxy": _four_to_corner,
}
_FROM_HUB: dict[str, Callable[[Tensor], Tensor] | None] = {
    "xyxy": None,
    "xywh": _xyxy_to_xywh,
    "cxcywh": _xyxy_to_cxcywh,
    "xywhr": None,
    "cxcywhr": _corner_to_centre,
    "xyxyxyxy": _corner_to_four,
}


def box_convert(boxes: Tensor, in_fmt: str, out_fmt: str) -> Tensor:
    """Boxes (..., K) in another format.

    Upright (K = 4): xyxy, xywh, cxcywh. Rotated by r degrees counterclockwise: xywhr, cxcywhr
    (K = 5), and the four corners, xyxyxyxy (K = 8). The two families do not convert to each other.

    >>> votive.vision.ops.box_convert(votive.tensor([[1.0, 2.0, 5.0, 4.0]]), "xyxy", "cxcywh")
    tensor([[3., 3., 4., 2.]])
    """
    for fmt in (in_fmt, out_fmt):
        if fmt not in _FORMATS:
            raise ValueError(f"box_convert: unknown format {fmt!r}; known are {_FORMATS}.")
    if in_fmt == out_fmt:
        return boxes.clone()
    if (in_fmt in _UPRIGHT) != (out_fmt in _UPRIGHT):
        raise NotImplementedError(
            f"box_convert: {in_fmt!r} and {out_fmt!r} do not convert: one is rotated, the other upright."
        )
    kind, whole = boxes.dtype, not boxes.dtype.is_floating_point
    for step in (_TO_HUB[in_fmt], _FROM_HUB[out_fmt]):
        if step is not None:
            boxes = step(boxes)
            if whole and in_fmt not in _UPRIGHT:  # each step is rounded, as in torchvision
                boxes = boxes.round().to(kind)
    return boxes


# --- overlap -------------------------------------------------------------------------------------


def box_area(boxes: Tensor, fmt: str = "xyxy") -> Tensor:
    """The area of each box of (..., 4).

    >>> votive.vision.ops.box_area(votive.tensor([[0, 0, 2, 3]]))
    tensor([6])
    """
    if fmt not in _UPRIGHT:
        raise ValueError(f"box_area: format must be one of {_UPRIGHT}, got {fmt!r}.")
    boxes = upcast(boxes)
    if fmt == "xyxy":
        return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return boxes[..., 2] * boxes[..., 3]


def _corners(boxes: Tensor, fmt: str) -> tuple[Tensor, Tensor]:
    """Upper left and lower right corners, each (..., 2)."""
    if fmt == "xyxy":
        return boxes[..., :2], boxes[..., 2:]
    if fmt == "xywh":
        return boxes[..., :2], boxes[..., :2] + boxes[..., 2:]
    return boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2


def _pairs(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> tuple[Tensor, Tensor]:
    """Intersection and union of all pairs, each (..., N, M)."""
    (low1, high1), (low2, high2) = _corners(boxes1, fmt), _corners(boxes2, fmt)
    low = F.maximum(low1[..., :, None, :], low2[..., None, :, :])
    high = F.minimum(high1[..., :, None, :], high2[..., None, :, :])
    side = upcast(high - low).clamp(min=0)
    inter = side[..., 0] * side[..., 1]
    area1, area2 = box_area(boxes1, fmt), box_area(boxes2, fmt)
    return inter, area1[..., :, None] + area2[..., None, :] - inter


def _hull(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Sides (..., N, M, 2) of the smallest box around each pair."""
    low = F.minimum(boxes1[..., :, None, :2], boxes2[..., None, :, :2])
    high = F.maximum(boxes1[..., :, None, 2:], boxes2[..., None, :, 2:])
    return upcast(high - low).clamp(min=0)


def box_iou(boxes1: Tensor, boxes2: Tensor, fmt: str = "xyxy") -> Tensor:
    """Intersection over union of all pairs of upright boxes, (..., N, 4) and (..., M, 4).

    >>> a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[1.0, 0, 3, 2], [5, 5, 6, 6]])
    >>> votive.vision.ops.box_iou(a, b)
    tensor([[0.3333, 0.0000]])
    """
    if fmt in _FORMATS[3:]:
        raise NotImplementedError(f"box_iou: rotated boxes ({fmt!r}) are not implemented.")
    if fmt not in _UPRIGHT:
        raise ValueError(f"box_iou: format must be one of {_UPRIGHT}, got {fmt!r}.")
    inter, union = _pairs(boxes1, boxes2, fmt)
    return inter / union


def generalized_box_iou(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """IoU less the part of the common hull that neither box covers (Rezatofighi et al. 2019).

    >>> a, b = votive.tensor([[0.0, 0, 1, 1]]), votive.tensor([[3.0, 0, 4, 1]])
    >>> votive.vision.ops.generalized_box_iou(a, b)
    tensor([[-0.5000]])
    """
    inter, union = _pairs(boxes1, boxes2)
    side = _hull(boxes1, boxes2)
    hull = side[..., 0] * side[..., 1]
    return inter / union - (hull - union) / hull


def _distance_iou(boxes1: Tensor, boxes2: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    iou = box_iou(boxes1, boxes2)
    side = _hull(boxes1, boxes2)
    diagonal = side[..., 0] ** 2 + side[..., 1] ** 2 + eps
    centre1, centre2 = ((b[..., :2] + b[..., 2:]) / 2 for b in (boxes1, boxes2))
    apart = (centre1[..., :, None, :] - centre2[..., None, :, :]) ** 2
    return iou - (apart[..., 0] + apart[..., 1]) / diagonal, iou


def distance_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """IoU less the squared distance of the centres, relative to the hull (Zheng et al. 2020).

    >>> a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[1.0, 0, 3, 2]])
    >>> votive.vision.ops.distance_box_iou(a, b)
    tensor([[0.2564]])
    """
    return _distance_iou(upcast(boxes1), upcast(boxes2), eps)[0]


def complete_box_iou(boxes1: Tensor, boxes2: Tensor, eps: float = 1e-7) -> Tensor:
    """Distance IoU less a term for different aspect ratios (Zheng et al. 2020).

    >>> a, b = votive.tensor([[0.0, 0, 2, 2]]), votive.tensor([[0.0, 0, 2, 1]])
    >>> votive.vision.ops.complete_box_iou(a, b)
    tensor([[0.4655]])
    """
    boxes1, boxes2 = upcast(boxes1), upcast(boxes2)
    distance, iou = _distance_iou(boxes1, boxes2, eps)
    ratio1, ratio2 = (F.atan((b[..., 2] - b[..., 0]) / (b[..., 3] - b[..., 1])) for b in (boxes1, boxes2))
    v = 4 / math.pi**2 * (ratio1[..., :, None] - ratio2[..., None, :]) ** 2
    # The weight of the aspect term is a constant of the derivative: equation 11 of the paper.
    alpha = (v / (1 - iou + v + eps)).detach()
    return distance - alpha * v


def masks_to_boxes(masks: Tensor) -> Tensor:
    """The (x1, y1, x2, y2) boxes around the nonzero parts of (N, H, W) masks; zeros for empty ones.

    >>> mask = votive.zeros(1, 4, 6)
    >>> mask[0, 1:3, 2:5] = 1
    >>> votive.vision.ops.masks_to_boxes(mask)
    tensor([[2., 1., 4., 2.]])
    """
    if masks.numel() == 0:
        return F.zeros((0, 4), dtype=dt.float32, device=masks.device)
    if masks.ndim != 3:
        raise ValueError(f"masks_to_boxes: masks must be (N, H, W), got {tuple(masks.shape)}.")
    on = masks.bool()
    _, height, width = masks.shape
    sides = []
    for line, last in ((on.any(1), width - 1), (on.any(2), height - 1)):
        line = line.int()
        sides.append((line.argmax(1), last - line.flip(1).argmax(1)))
    (x1, x2), (y1, y2) = sides
    boxes = F.stack((x1, y1, x2, y2), 1).float()
    return F.where(on.flatten(1).any(1)[:, None], boxes, 0.0)
