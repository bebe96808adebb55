"""Transforms of samples with boxes: cutting, choosing and cleaning them up."""

from __future__ import annotations

from typing import Any

from ...ops.registry import F as ops
from ...tensor import Tensor
from .. import tv_tensors
from ..ops.boxes import box_iou
from . import functional as F
from .base import Transform, as_sample, flatten, get_bounding_boxes, has_all, has_any, integer, query_size, uniform
from .functional.boxes import corners
from .functional.kernels import is_pil, is_pure_tensor
from .mixing import Getter, labels_finder

BoundingBoxes = tv_tensors.BoundingBoxes


class ConvertBoundingBoxFormat(Transform):
    """Boxes in another format.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [[1, 2, 4, 6]], format="XYXY", canvas_size=(8, 8)
    ... )
    >>> votive.vision.transforms.ConvertBoundingBoxFormat("XYWH")(boxes).tolist()
    [[1, 2, 3, 4]]
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, format: tv_tensors.BoundingBoxFormat | str) -> None:
        super().__init__()
        self.format = tv_tensors.box_format(format)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(Transform):
    """Boxes cut at the borders of their image.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [[1, 2, 14, 6]], format="XYXY", canvas_size=(8, 8)
    ... )
    >>> votive.vision.transforms.ClampBoundingBoxes()(boxes).tolist()
    [[1, 2, 8, 6]]
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None = "auto") -> None:
        super().__init__()
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_bounding_boxes(inpt, clamping_mode=self.clamping_mode)


class SetClampingMode(Transform):
    """What later transforms do with boxes at the borders: "soft", "hard" or None.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [[1, 2, 4, 6]], format="XYXY", canvas_size=(8, 8)
    ... )
    >>> votive.vision.transforms.SetClampingMode(None)(boxes).clamping_mode is None
    True
    """

    _transformed_types = (BoundingBoxes,)

    def __init__(self, clamping_mode: str | None) -> None:
        super().__init__()
        if clamping_mode not in (None, "soft", "hard"):
            raise ValueError(f"SetClampingMode: needs None, 'soft' or 'hard', got {clamping_mode!r}.")
        self.clamping_mode = clamping_mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return tv_tensors.wrap(inpt.as_tensor(), like=inpt, clamping_mode=self.clamping_mode)


class RandomIoUCrop(Transform):
    """A crop that some box overlaps by a random minimum (SSD, Liu et al. 2016).

    Boxes whose centre is cut off become zeros; `SanitizeBoundingBoxes` removes them.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [[1, 1, 7, 7]], format="XYXY", canvas_size=(8, 8)
    ... )
    >>> image, boxes = votive.vision.transforms.RandomIoUCrop()(votive.zeros(3, 8, 8), boxes)
    >>> tuple(image.shape[-2:]) == boxes.canvas_size
    True
    """

    def __init__(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: list[float] | None = None,
        trials: int = 40,
    ) -> None:
        super().__init__()
        self.min_scale, self.max_scale = min_scale, max_scale
        self.min_aspect_ratio, self.max_aspect_ratio = min_aspect_ratio, max_aspect_ratio
        self.options = sampler_options or [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
        self.trials = trials

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        pictures = has_any(flat_inputs, is_pil, tv_tensors.Image, is_pure_tensor)
        if not (has_all(flat_inputs, BoundingBoxes) and pictures):
            raise TypeError("RandomIoUCrop: a sample needs an image and BoundingBoxes.")

    def _trial(self, boxes: Tensor, height: int, width: int, overlap: float) -> dict[str, Any] | None:
        new_width = int(width * uniform(self.min_scale, self.max_scale))
        new_height = int(height * uniform(self.min_scale, self.max_scale))
        if not new_width or not new_height:
            return None
        if not self.min_aspect_ratio <= new_width / new_height <= self.max_aspect_ratio:
            return None
        left = int((width - new_width) * uniform(0, 1))
        top = int((height - new_height) * uniform(0, 1))
        right, bottom = left + new_width, top + new_height
        x, y = 0.5 * (boxes[:, 0] + boxes[:, 2]), 0.5 * (boxes[:, 1] + boxes[:, 3])
        inside = (left < x) & (x < right) & (top < y) & (y < bottom)
        if not bool(inside.any().item()):
            return None
        crop = ops.tensor([[left, top, right, bottom]], device=boxes.device).to(boxes.dtype)
        if box_iou(boxes[inside], crop).max().item() < overlap:
            return None
        return {"top": top, "left": left, "height": new_height, "width": new_width, "is_within_crop_area": inside}

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        given = get_bounding_boxes(flat_inputs)
        boxes = corners(given.as_tensor(), given.format)
        while True:
            overlap = self.options[integer(0, len(self.options))]
            if overlap >= 1.0:  # the image as it is
                return {}
            for _ in range(self.trials):
                found = self._trial(boxes, height, width, overlap)
                if found is not None:
                    return found

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        if not params:
            return inpt
        place = {k: params[k] for k in ("top", "left", "height", "width")}
        out = self._call_kernel(F.crop, inpt, **place)
        if isinstance(out, BoundingBoxes):
            kept = params["is_within_crop_area"].unsqueeze(1)
            plain = out.as_tensor()
            out = tv_tensors.wrap(ops.where(kept, plain, ops.zeros_like(plain)), like=out)
        return out


def _labels(name: str, labels: Any, count: int, what: str) -> tuple[Tensor, ...]:
    """The labels of a sample: none, one tensor or several, each with a label for every box or point."""
    listed = () if labels is None else tuple(labels) if isinstance(labels, (list, tuple)) else (labels,)
    for label in listed:
        if not isinstance(label, Tensor) or label.shape[0] != count:
            raise ValueError(f"{name}: labels must be tensors with one for each of the {count} {what}, got {label!r}.")
    return listed


class SanitizeBoundingBoxes(Transform):
    """Without boxes that are too small, empty or outside, and without their labels and masks.

    >>> boxes = votive.vision.tv_tensors.BoundingBoxes(
    ...     [[1, 1, 7, 7], [3, 3, 3, 3]], format="XYXY", canvas_size=(8, 8)
    ... )
    >>> sample = {"boxes": boxes, "labels": votive.tensor([5, 6])}
    >>> votive.vision.transforms.SanitizeBoundingBoxes()(sample)["labels"]
    tensor([5])
    """

    def __init__(self, min_size: float = 1.0, min_area: float = 1.0, labels_getter: Getter = "default") -> None:
        super().__init__()
        if min_size < 1 or min_area < 1:
            raise ValueError(
                f"SanitizeBoundingBoxes: min_size and min_area must be at least 1, got {min_size} and {min_area}."
            )
        self.min_size, self.min_area = min_size, min_area
        self.labels_getter = labels_getter
        self._find_labels = labels_finder("SanitizeBoundingBoxes", labels_getter)

    def _valid(self, boxes: BoundingBoxes) -> Tensor:
        b = corners(boxes.as_tensor(), boxes.format)
        height, width = boxes.canvas_size
        wide, high = b[:, 2] - b[:, 0], b[:, 3] - b[:, 1]
        fine = (wide >= self.min_size) & (high >= self.min_size) & (wide * high >= self.min_area)
        return fine & (b >= 0).all(1) & (b[:, 0::2] <= width).all(1) & (b[:, 1::2] <= height).all(1)

    def forward(self, *inputs: object) -> Any:
        sample = as_sample(inputs)
        leaves, rebuild = flatten(sample)
        boxes = get_bounding_boxes(leaves)
        labels = _labels("SanitizeBoundingBoxes", self._find_labels(sample), boxes.shape[0], "boxes")
        params = {"valid": self._valid(boxes), "labels": labels}
        return rebuild([self.transform(leaf, params) for leaf in leaves])

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        valid = params["valid"]
        if any(inpt is label for label in params["labels"]):
            return inpt[valid]
        if isinstance(inpt, BoundingBoxes):
            return tv_tensors.wrap(inpt.as_tensor()[valid], like=inpt)
        if isinstance(inpt, tv_tensors.Mask) and inpt.shape[0] == valid.shape[0]:
            return tv_tensors.wrap(inpt.as_tensor()[valid], like=inpt)
        return inpt


class ClampKeyPoints(Transform):
    """Points moved into their image.

    >>> points = votive.vision.tv_tensors.KeyPoints([[-1, 3], [20, 3]], canvas_size=(8, 9))
    >>> votive.vision.transforms.ClampKeyPoints()(points).tolist()
    [[0, 3], [8, 3]]
    """

    _transformed_types = (tv_tensors.KeyPoints,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.clamp_keypoints(inpt)


class SanitizeKeyPoints(Transform):
    """Without points, or groups of points, that lie outside of the image, and their labels.

    >>> points = votive.vision.tv_tensors.KeyPoints([[1, 3], [20, 3]], canvas_size=(8, 9))
    >>> votive.vision.transforms.SanitizeKeyPoints()(points).tolist()
    [[1, 3]]
    """

    def __init__(self, labels_getter: Getter = None) -> None:
        super().__init__()
        self.labels_getter = labels_getter
        self._find_labels = labels_finder("SanitizeKeyPoints", labels_getter)

    def forward(self, *inputs: object) -> Any:
        sample = as_sample(inputs)
        leaves, rebuild = flatten(sample)
        found = [leaf for leaf in leaves if isinstance(leaf, tv_tensors.KeyPoints)]
        if len(found) != 1:
            raise ValueError(f"SanitizeKeyPoints: needs one KeyPoints in a sample, got {len(found)}.")
        points, (height, width) = found[0], found[0].canvas_size
        labels = _labels("SanitizeKeyPoints", self._find_labels(sample), points.shape[0], "points")
        x, y = points[..., 0], points[..., 1]
        valid = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        valid = valid.flatten(1).all(1) if valid.ndim > 1 else valid
        kept = [tv_tensors.wrap(leaf.as_tensor()[valid], like=leaf) if leaf is points else leaf for leaf in leaves]
        kept = [leaf[valid] if any(leaf is label for label in labels) else leaf for leaf in kept]
        return rebuild(kept)
