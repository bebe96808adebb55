"""Pictures as DETR reads them, of several sizes in a batch, and the things that it found. Knows no model."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ..tensor import Tensor
from .image_processing import BatchFeature, ImageProcessor
from .image_processors import IMAGENET_MEAN, IMAGENET_STD
from .pixels import pictures_of
from .segmenting import Sizes, sizes_of


class DetrImageProcessor(ImageProcessor):
    """Of DETR: the shorter side to 800 pixels, the longer to 1333 at most; padded below and on the right.

    >>> processor = votive.models.DetrImageProcessor(size={"shortest_edge": 8, "longest_edge": 12})
    >>> found = processor([np.zeros((10, 20, 3), np.uint8), np.zeros((9, 9, 3), np.uint8)], return_tensors="vt")
    >>> found.pixel_values.shape, found.pixel_mask.sum((1, 2))
    (votive.Size([2, 3, 8, 12]), tensor([72, 64]))
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"shortest_edge": 800, "longest_edge": 1333},
        "image_mean": IMAGENET_MEAN,
        "image_std": IMAGENET_STD,
        "do_pad": True,
        "pad_size": None,
    }
    square = False
    do_pad: bool
    pad_size: Any

    def __init__(self, **fields: Any) -> None:
        # Older files have a number, and what the longer side may be beside it.
        most, padded = fields.pop("max_size", None), fields.pop("pad_and_return_pixel_mask", None)
        if isinstance(fields.get("size"), int):
            fields["size"] = {"shortest_edge": fields["size"], "longest_edge": 1333 if most is None else most}
        if padded is not None:
            fields.setdefault("do_pad", padded)
        super().__init__(**fields)

    def preprocess(self, images: object, return_tensors: str | None = None, **changes: Any) -> BatchFeature:
        """`pixel_values` of pictures, and where they are padded to one size `pixel_mask`, 1 at what is no padding."""
        asked = self.asked(return_tensors, changes)
        made = [asked.one(picture) for picture in pictures_of(images)]
        if not asked.do_pad:
            return BatchFeature(pixel_values=asked.batch(made, return_tensors))
        room = asked.pad_size or {}
        height = room.get("height") or max((x.shape[1] for x in made), default=0)
        width = room.get("width") or max((x.shape[2] for x in made), default=0)
        padded, masks = [], []
        for x in made:
            if x.shape[1] > height or x.shape[2] > width:
                raise ValueError(
                    f"{type(self).__name__}: a picture of {x.shape[1]} x {x.shape[2]} pixels does not fit into "
                    f"pad_size={asked.pad_size}."
                )
            ground = np.zeros((x.shape[0], height, width), x.dtype)
            ground[:, : x.shape[1], : x.shape[2]] = x
            mask = np.zeros((height, width), np.int64)
            mask[: x.shape[1], : x.shape[2]] = 1
            padded.append(ground)
            masks.append(mask)
        values = asked.batch(padded, return_tensors)
        return BatchFeature(pixel_values=values, pixel_mask=asked.batch(masks, return_tensors))

    def post_process_object_detection(
        self, outputs: Any, threshold: float = 0.5, target_sizes: Sizes = None
    ) -> list[dict[str, Tensor]]:
        """The things in each picture: `scores`, `labels` and `boxes` (things, 4) of left, top, right, bottom.

        Boxes are in pixels of `target_sizes` (height, width), or in shares of the sides without them.
        """
        scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
        x, y, width, height = outputs.pred_boxes.unbind(-1)
        boxes = votive.stack([x - 0.5 * width, y - 0.5 * height, x + 0.5 * width, y + 0.5 * height], -1)
        sizes = sizes_of(target_sizes, boxes.shape[0])
        if sizes is not None:
            sides = votive.tensor([[w, h, w, h] for h, w in sizes], dtype=boxes.dtype, device=boxes.device)
            boxes = boxes * sides.unsqueeze(1)
        found = []
        for score, label, box in zip(scores, labels, boxes, strict=True):
            kept = score > threshold
            found.append({"scores": score[kept], "labels": label[kept], "boxes": box[kept]})
        return found
