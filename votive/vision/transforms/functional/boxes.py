"""Boxes under transforms: their formats, and what becomes of them at the borders."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....ops.registry import F
from ...tv_tensors import BoundingBoxes, BoundingBoxFormat, box_format, wrap
from .kernels import is_pure_tensor

XYXY = BoundingBoxFormat.XYXY


def corners(boxes: Any, format: BoundingBoxFormat) -> Any:
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


def from_corners(boxes: Any, format: BoundingBoxFormat) -> Any:
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


def _convert(boxes: Any, old: BoundingBoxFormat, new: BoundingBoxFormat) -> Any:
    return boxes if old is new else from_corners(corners(boxes, old), new)


def _plain_or_boxes(op: str, inpt: Any) -> bool:
    """True for a plain tensor, False for boxes; else an error."""
    if is_pure_tensor(inpt):
        return True
    if isinstance(inpt, BoundingBoxes):
        return False
    raise TypeError(f"{op}: takes a plain tensor or BoundingBoxes, got {type(inpt).__name__}.")


def convert_bounding_box_format(
    inpt: Any, old_format: Any = None, new_format: Any = None, inplace: bool = False
) -> Any:
    """Boxes in another format; a plain tensor needs `old_format`, BoundingBoxes know theirs.

    >>> convert = votive.vision.transforms.functional.convert_bounding_box_format
    >>> convert(votive.tensor([[1, 2, 4, 6]]), "XYXY", "XYWH")
    tensor([[1, 2, 3, 4]])
    """
    op = "convert_bounding_box_format"
    if new_format is None:
        raise TypeError(f"{op}: new_format is missing.")
    new = box_format(new_format)
    if _plain_or_boxes(op, inpt):
        if old_format is None:
            raise ValueError(f"{op}: old_format has to be given for a plain tensor.")
        out = _convert(inpt, box_format(old_format), new)
        return inpt.copy_(out) if inplace and out is not inpt else out
    if old_format is not None:
        raise ValueError(f"{op}: BoundingBoxes know their format; leave old_format out.")
    out = _convert(inpt.as_tensor(), inpt.format, new)
    if inplace:
        out = inpt.as_tensor().copy_(out)
    return wrap(out, like=inpt, format=new)


def clamped(boxes: Any, format: BoundingBoxFormat, canvas_size: Any, mode: str | None) -> Any:
    """Plain boxes cut at the borders of the canvas, unless the mode is None."""
    if mode is None:
        return boxes
    # Through floats: half of an odd width would be lost on the way there and back.
    wide = boxes if boxes.dtype.is_floating_point else boxes.float()
    b = corners(wide, format)
    height, width = canvas_size
    x, y = b[..., 0::2].clamp(min=0, max=width), b[..., 1::2].clamp(min=0, max=height)
    b = F.stack((x, y), -1).flatten(-2)
    return from_corners(b, format).to(boxes.dtype)


def clamp_bounding_boxes(
    inpt: Any, format: Any = None, canvas_size: Any = None, clamping_mode: str | None = "auto"
) -> Any:
    """Boxes cut at the borders of their image; plain tensors need format, size and mode.

    >>> clamp = votive.vision.transforms.functional.clamp_bounding_boxes
    >>> clamp(votive.tensor([[-3, 2, 9, 5]]), "XYXY", (4, 8), "soft")
    tensor([[0, 2, 8, 4]])
    """
    op = "clamp_bounding_boxes"
    if clamping_mode not in (None, "soft", "hard", "auto"):
        raise ValueError(f"{op}: clamping_mode must be 'soft', 'hard', 'auto' or None, got {clamping_mode!r}.")
    if _plain_or_boxes(op, inpt):
        if format is None or canvas_size is None or clamping_mode == "auto":
            raise ValueError(f"{op}: a plain tensor needs format, canvas_size and clamping_mode.")
        return clamped(inpt, box_format(format), canvas_size, clamping_mode)
    if format is not None or canvas_size is not None:
        raise ValueError(f"{op}: BoundingBoxes know format and canvas_size; leave them out.")
    mode = inpt.clamping_mode if clamping_mode == "auto" else clamping_mode
    return wrap(clamped(inpt.as_tensor(), inpt.format, inpt.canvas_size, mode), like=inpt)


def shifted(boxes: BoundingBoxes, x: int, y: int, canvas_size: tuple[int, int]) -> Any:
    """Boxes moved on to a canvas of another size."""
    both = boxes.format is XYXY
    by = F.tensor([x, y, x if both else 0, y if both else 0], dtype=boxes.dtype)
    moved = boxes.as_tensor() + by.to(boxes.device)
    moved = clamped(moved, boxes.format, canvas_size, boxes.clamping_mode)
    return wrap(moved, like=boxes, canvas_size=canvas_size)


def around(points: Any) -> Any:
    """The corner boxes around (N, 4, 2) points."""
    return F.cat((F.amin(points, 1), F.amax(points, 1)), 1)


def four_points(corner_boxes: Any) -> Any:
    """(N, 4, 2): the corners of (N, 4) boxes, clockwise from the upper left."""
    x1, y1, x2, y2 = F.unbind(corner_boxes.reshape(-1, 4), 1)
    return F.stack((x1, y1, x2, y1, x2, y2, x1, y2), 1).reshape(-1, 4, 2)


def moved(
    boxes: BoundingBoxes,
    move: Any,
    canvas_size: tuple[int, int],
    whole_corners: bool = False,
    whole_result: bool = False,
) -> Any:
    """Boxes around their moved corners, `move` being a function of (P, 2) points.

    Integer boxes are cut to integers where torchvision does so: always at the end, for some
    transforms also when the corners are found, or before boxes are cut at the borders.
    """
    plain = boxes.as_tensor()
    if boxes.numel() == 0:
        return wrap(plain, like=boxes, canvas_size=canvas_size)
    wide = plain if plain.dtype.is_floating_point or whole_corners else plain.to(dt.float32)
    found = corners(wide, boxes.format)
    found = found if found.dtype.is_floating_point else found.to(dt.float32)
    out = around(move(four_points(found).reshape(-1, 2)).reshape(-1, 4, 2))
    out = out.to(plain.dtype) if whole_result else out
    out = clamped(out, XYXY, canvas_size, boxes.clamping_mode)
    return wrap(from_corners(out, boxes.format).to(plain.dtype), like=boxes, canvas_size=canvas_size)
