"""Pictures and boxes as DETR takes them, and boxes of what it found. Knows no model.

Results are those of transformers' DetrImageProcessor, for boxes in COCO's form.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ..tensor import Tensor
from .detr_loss import corners
from .image_processing import BatchFeature, ImageProcessor
from .image_processors import IMAGENET_MEAN, IMAGENET_STD
from .pixels import channels_first, pictures_of, size_of
from .segmenting import Sizes, sizes_of


class DetrImageProcessor(ImageProcessor):
    """Of DETR: the shorter side to 800 pixels, the longer to 1333 at most, then padding on the right and below.

    >>> found = votive.models.DetrImageProcessor(size={"shortest_edge": 20, "longest_edge": 40})(
    ...     [np.zeros((20, 30, 3), np.uint8), np.zeros((40, 20, 3), np.uint8)], return_tensors="vt")
    >>> found.pixel_values.shape, found.pixel_mask.sum((1, 2)).tolist()
    (votive.Size([2, 3, 40, 30]), [600, 800])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"shortest_edge": 800, "longest_edge": 1333},
        "image_mean": IMAGENET_MEAN,
        "image_std": IMAGENET_STD,
        "do_pad": True,
        "pad_size": None,
        "do_convert_annotations": None,  # as do_normalize
        "format": "coco_detection",
    }
    square = False
    do_pad: bool
    pad_size: Any
    do_convert_annotations: bool | None
    format: str

    def __init__(self, **fields: Any) -> None:
        longest = fields.pop("max_size", None)  # as older files say it
        if isinstance(fields.get("size"), int):
            fields["size"] = {"shortest_edge": fields["size"], "longest_edge": longest or 1333}
        if "pad_and_return_pixel_mask" in fields:
            fields.setdefault("do_pad", fields.pop("pad_and_return_pixel_mask"))
        super().__init__(**fields)
        if self.do_convert_annotations is None:
            self.do_convert_annotations = self.do_normalize
        if self.format != "coco_detection":
            raise ValueError(f"DetrImageProcessor: format must be 'coco_detection', got {self.format!r}.")
        if self.do_center_crop:
            raise ValueError("DetrImageProcessor: do_center_crop=True would cut boxes off; set it to False.")

    def preprocess(
        self, images: object, return_tensors: str | None = None, annotations: Any = None, **changes: Any
    ) -> BatchFeature:
        """`pixel_values`, `pixel_mask` (0 at padding), and of `annotations` the `labels` of a loss.

        An annotation is a dict with `image_id` and `annotations`, each of which has `bbox` (left, top, width, height),
        `category_id` and `area`.
        """
        asked = self.asked(return_tensors, changes)
        pictures = pictures_of(images)
        made = [asked.one(picture) for picture in pictures]
        labels = None
        if annotations is not None:
            told = [annotations] if isinstance(annotations, dict) else list(annotations)
            if len(told) != len(pictures):
                raise ValueError(f"DetrImageProcessor: {len(told)} annotations for {len(pictures)} pictures.")
            before = [channels_first(picture, self.do_convert_rgb).shape[1:] for picture in pictures]
            labels = [asked.target(*each) for each in zip(told, before, (x.shape[1:] for x in made), strict=True)]
        found = BatchFeature()
        if asked.do_pad and made:
            room = asked.room(made)
            masks = []
            for i, x in enumerate(made):
                H, W = x.shape[1:]
                masks.append(np.zeros(room, np.int64))
                masks[-1][:H, :W] = 1
                made[i] = np.zeros((x.shape[0], *room), x.dtype)
                made[i][:, :H, :W] = x
                if labels is not None and room != (H, W):
                    labels[i]["size"] = np.array(room, np.int64)
                    if asked.do_convert_annotations:
                        share = np.array([W / room[1], H / room[0]] * 2, np.float32)
                        labels[i]["boxes"] = labels[i]["boxes"] * share
            found["pixel_mask"] = asked.batch(masks, return_tensors)
        found["pixel_values"] = asked.batch(made, return_tensors)
        if labels is not None:
            as_kind = votive.from_numpy if return_tensors == "vt" else lambda array: array
            found["labels"] = [{name: as_kind(value) for name, value in label.items()} for label in labels]
        return found

    def room(self, made: list[np.ndarray]) -> tuple[int, int]:
        """Height and width that all pictures are padded to."""
        largest = max(x.shape[1] for x in made), max(x.shape[2] for x in made)
        if self.pad_size is None:
            return largest
        asked = size_of(self.pad_size, True)
        room = asked["height"], asked["width"]
        if room[0] < largest[0] or room[1] < largest[1]:
            raise ValueError(f"DetrImageProcessor: pictures of up to {largest} do not fit into pad_size={room}.")
        return room

    def target(self, told: dict[str, Any], before: tuple[int, ...], now: tuple[int, ...]) -> dict[str, np.ndarray]:
        """What a loss takes: classes, and boxes of the resized picture."""
        if "image_id" not in told or "annotations" not in told:
            raise ValueError(f"DetrImageProcessor: an annotation has image_id and annotations; got {list(told)}.")
        things = [thing for thing in told["annotations"] if not thing.get("iscrowd", 0)]
        boxes: np.ndarray = np.array([thing["bbox"] for thing in things], np.float32).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        boxes[:, 0::2] = boxes[:, 0::2].clip(0, before[1])
        boxes[:, 1::2] = boxes[:, 1::2].clip(0, before[0])
        kept = (boxes[:, 3] > boxes[:, 1]) & (boxes[:, 2] > boxes[:, 0])
        high, wide = now[0] / before[0], now[1] / before[1]
        boxes = boxes[kept] * np.array([wide, high, wide, high], np.float32)
        if self.do_convert_annotations:
            center, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
            boxes = np.concatenate([center, size], 1) / np.array([now[1], now[0]] * 2, np.float32)
        area = np.array([thing["area"] for thing in things], np.float32)[kept]
        return {
            "size": np.array(now, np.int64),
            "image_id": np.array([told["image_id"]], np.int64),
            "class_labels": np.array([thing["category_id"] for thing in things], np.int64)[kept],
            "boxes": boxes.astype(np.float32),
            "area": (area * (wide * high)).astype(np.float32),
            "iscrowd": np.zeros(int(kept.sum()), np.int64),
            "orig_size": np.array(before, np.int64),
        }

    def post_process_object_detection(
        self, outputs: Any, threshold: float = 0.5, target_sizes: Sizes = None
    ) -> list[dict[str, Tensor]]:
        """`scores`, `labels` and `boxes` (left, top, right, bottom) of what was found in each picture.

        Boxes are shares of the picture, and with `target_sizes` (height, width) of each picture pixels of it.
        """
        scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
        boxes = corners(outputs.pred_boxes)
        sizes = sizes_of(target_sizes, len(scores))
        found = []
        for i in range(len(scores)):
            kept = scores[i] > threshold
            own = boxes[i][kept]
            if sizes is not None:
                high, wide = sizes[i]
                own = own * votive.tensor([wide, high, wide, high], dtype=own.dtype, device=own.device)
            found.append({"scores": scores[i][kept], "labels": labels[i][kept], "boxes": own})
        return found
