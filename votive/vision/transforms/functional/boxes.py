"""Boxes and points under transforms: their formats, where they go, and what becomes of them at the borders."""

from __future__ import annotations

from collections.abc import Callable

from ....core import dtype as dt
from ....ops.registry import F
from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, BoundingBoxFormat, KeyPoints, box_format, wrap
from .kernels import is_pure_tensor

XYXY = BoundingBoxFormat.XYXY
Canvas = tuple[int, int]  # height, width
Placed = BoundingBoxes | KeyPoints
Move = Callable[[Tensor], Tensor]  # where points (P, 2) go


def corners(boxes: Tensor, format: BoundingBoxFormat) -> Tensor:
    """(x1, y1, x2, y2) of boxes in any format, in their own dtype."""
    if format is XYXY:
        return boxes
    first, second = boxes[..., :2], boxes[..., 2:]
    if format is BoundingBoxFormat.XYWH:
        return F.cat((first, first + second), -1)
    if boxes.dtype.is_floating_point:
        low = first - second / 2
        return F.cat((low, low + second), -1)
    low = first.float() - second.float() / 2
    return F.cat((low, low + second.float()), -1).to(boxes.dtype)


def from_corners(boxes: Tensor, format: BoundingBoxFormat) -> Tensor:
    """Corner boxes in another format, in their own dtype."""
    if format is XYXY:
        return boxes
    low, high = boxes[..., :2], boxes[..., 2:]
    if format is BoundingBoxFormat.XYWH:
        return F.cat((low, high - low), -1)
    size = high - low
    double = low * 2 + size
    half = double / 2 if boxes.dtype.is_floating_point else F.div(double, 2, rounding_mode="floor")
    return F.cat((half, size), -1)


def _convert(boxes: Tensor, old: BoundingBoxFormat, new: BoundingBoxFormat) -> Tensor:
    return boxes if old is new else from_corners(corners(boxes, old), new)


def _check_kind(op: str, inpt: object, kind: type) -> None:
    if not is_pure_tensor(inpt) and not isinstance(inpt, kind):
        raise TypeError(f"{op}: takes a plain tensor or {kind.__name__}, got {type(inpt).__name__}.")


def convert_bounding_box_format(
    inpt: Tensor,
    old_format: BoundingBoxFormat | str | None = None,
    new_format: BoundingBoxFormat | str | None = None,
    inplace: bool = False,
) -> Tensor:
    """Boxes in another format; a plain tensor needs `old_format`, BoundingBoxes know theirs.

    >>> convert = votive.vision.transforms.functional.convert_bounding_box_format
    >>> convert(votive.tensor([[1, 2, 4, 6]]), "XYXY", "XYWH")
    tensor([[1, 2, 3, 4]])
    """
    op = "convert_bounding_box_format"
    if new_format is None:
        raise TypeError(f"{op}: new_format is missing.")
    new = box_format(new_format)
    _check_kind(op, inpt, BoundingBoxes)
    if isinstance(inpt, BoundingBoxes):
        if old_format is not None:
            raise ValueError(f"{op}: BoundingBoxes know their format; leave old_format out.")
        out = _convert(inpt.as_tensor(), inpt.format, new)
        return wrap(inpt.as_tensor().copy_(out) if inplace else out, like=inpt, format=new)
    if old_format is None:
        raise ValueError(f"{op}: a plain tensor needs old_format.")
    out = _convert(inpt, box_format(old_format), new)
    return inpt.copy_(out) if inplace and out is not inpt else out


def clamped(boxes: Tensor, format: BoundingBoxFormat, canvas_size: Canvas, mode: str | None) -> Tensor:
    """Plain boxes cut at the borders of the canvas, unless the mode is None."""
    if mode is None:
        return boxes
    # Through floats: half of an odd width would be lost on the way there and back.
    b = corners(boxes if boxes.dtype.is_floating_point else boxes.float(), format)
    height, width = canvas_size
    x, y = b[..., 0::2].clamp(min=0, max=width), b[..., 1::2].clamp(min=0, max=height)
    return from_corners(F.stack((x, y), -1).flatten(-2), format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Tensor,
    format: BoundingBoxFormat | str | None = None,
    canvas_size: Canvas | None = None,
    clamping_mode: str | None = "auto",
) -> Tensor:
    """Boxes cut at the borders of their image; plain tensors need format, size and mode.

    >>> clamp = votive.vision.transforms.functional.clamp_bounding_boxes
    >>> clamp(votive.tensor([[-3, 2, 9, 5]]), "XYXY", (4, 8), "soft")
    tensor([[0, 2, 8, 4]])
    """
    op = "clamp_bounding_boxes"
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"{op}: clamping_mode must be 'soft', 'hard', 'auto' or None, got {clamping_mode!r}.")
    _check_kind(op, inpt, BoundingBoxes)
    if isinstance(inpt, BoundingBoxes):
        if format is not None or canvas_size is not None:
            raise ValueError(f"{op}: BoundingBoxes know format and canvas_size; leave them out.")
        mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
        return wrap(clamped(inpt.as_tensor(), inpt.format, inpt.canvas_size, mode), like=inpt)
    if format is None or canvas_size is None or clamping_mode == "auto":
        raise ValueError(f"{op}: a plain tensor needs format, canvas_size and clamping_mode.")
    return clamped(inpt, box_format(format), canvas_size, clamping_mode)


def clamp_keypoints(inpt: Tensor, canvas_size: Canvas | None = None) -> Tensor:
    """Points moved into their image; a plain tensor needs `canvas_size` (height, width).

    >>> clamp = votive.vision.transforms.functional.clamp_keypoints
    >>> clamp(votive.tensor([[-1, 3], [20, 30]]), (8, 9))
    tensor([[0, 3],
            [8, 7]])
    """
    op = "clamp_keypoints"
    _check_kind(op, inpt, KeyPoints)
    if isinstance(inpt, KeyPoints):
        if canvas_size is not None:
            raise ValueError(f"{op}: KeyPoints know their canvas_size; leave it out.")
        points, (height, width) = inpt.as_tensor(), inpt.canvas_size
    elif canvas_size is None:
        raise ValueError(f"{op}: a plain tensor needs canvas_size.")
    else:
        points, (height, width) = inpt, canvas_size
    x, y = points[..., 0].clamp(0, width - 1), points[..., 1].clamp(0, height - 1)
    return wrap(F.stack((x, y), -1), like=inpt)


def shifted(inpt: Placed, x: int, y: int, canvas_size: Canvas) -> Placed:
    """Boxes or points moved on to a canvas of another size."""
    by = [x, y]
    if isinstance(inpt, BoundingBoxes):
        by += by if inpt.format is XYXY else [0, 0]
    out = inpt.as_tensor() + F.tensor(by, dtype=inpt.dtype, device=inpt.device)
    if isinstance(inpt, BoundingBoxes):
        out = clamped(out, inpt.format, canvas_size, inpt.clamping_mode)
    return wrap(out, like=inpt, canvas_size=canvas_size)


def _around(points: Tensor) -> Tensor:
    """The corner boxes around (N, 4, 2) points."""
    return F.cat((F.amin(points, 1), F.amax(points, 1)), 1)


def _four_points(corner_boxes: Tensor) -> Tensor:
    """(N, 4, 2): the corners of (N, 4) boxes, clockwise from the upper left."""
    x1, y1, x2, y2 = F.unbind(corner_boxes.reshape(-1, 4), 1)
    return F.stack((x1, y1, x2, y1, x2, y2, x1, y2), 1).reshape(-1, 4, 2)


def moved(
    inpt: Placed, move: Move, canvas_size: Canvas, whole_corners: bool = False, whole_result: bool = False
) -> Placed:
    """Points where they go, and boxes around where their corners go.

    Integer boxes are cut to integers where torchvision does so: always at the end, for some
    transforms also when the corners are found, or before boxes are cut at the borders.
    """
    plain = inpt.as_tensor()
    if inpt.numel() == 0:
        return wrap(plain, like=inpt, canvas_size=canvas_size)
    exact = plain.dtype.is_floating_point
    if isinstance(inpt, KeyPoints):
        out = move((plain if exact else plain.to(dt.float32)).reshape(-1, 2)).reshape(tuple(plain.shape))
    else:
        found = corners(plain if exact or whole_corners else plain.to(dt.float32), inpt.format)
        found = found if exact else found.to(dt.float32)
        out = _around(move(_four_points(found).reshape(-1, 2)).reshape(-1, 4, 2))
        out = out.to(plain.dtype) if whole_result else out
        out = from_corners(clamped(out, XYXY, canvas_size, inpt.clamping_mode), inpt.format)
    return wrap(out.to(plain.dtype), like=inpt, canvas_size=canvas_size)
