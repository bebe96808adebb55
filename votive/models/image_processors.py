"""Image processors that do more than resize, crop and scale: of ConvNeXt and SegFormer; and BLIP's. Knows no model."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..tensor import Tensor
from .image_processing import _CLIP_MEAN, _CLIP_STD, BatchFeature, ImageProcessor
from .pixels import center_cropped, pictures_of, resized, target_size
from .segmenting import label_map, nearest, semantic_maps

IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class BlipImageProcessor(ImageProcessor):
    """Of BLIP: a square by bicubic filtering.

    >>> votive.models.BlipImageProcessor().size
    {'height': 384, 'width': 384}
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"height": 384, "width": 384},
        "resample": 3,
        "image_mean": _CLIP_MEAN,
        "image_std": _CLIP_STD,
        "do_convert_rgb": True,
    }


class ConvNextImageProcessor(ImageProcessor):
    """Of ConvNeXt: below 384 pixels the middle `crop_pct` of the picture, from there on all of it, as a square.

    >>> votive.models.ConvNextImageProcessor(size=64)(np.zeros((40, 60, 3), np.uint8))["pixel_values"][0].shape
    (3, 64, 64)
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"shortest_edge": 384},
        "resample": 3,
        "crop_pct": 224 / 256,
    }
    square = False
    crop_pct: float | None

    def sized(self, x: np.ndarray) -> np.ndarray:
        """A square: its middle where it is small, and else the picture warped."""
        if set(self.size) != {"shortest_edge"}:
            raise ValueError(f"{type(self).__name__}: size must be {{'shortest_edge': number}}, got {self.size}.")
        edge = self.size["shortest_edge"]
        if edge >= 384:
            return resized(x, (edge, edge), self.resample)
        share = self.defaults["crop_pct"] if self.crop_pct is None else self.crop_pct
        wide = resized(x, target_size(x.shape[1:], {"shortest_edge": int(edge / share)}), self.resample)
        return center_cropped(wide, (edge, edge))


class SegformerImageProcessor(ImageProcessor):
    """Of SegFormer: a square, and maps of classes beside it, by the nearest pixel.

    >>> processor = votive.models.SegformerImageProcessor(size=16, do_reduce_labels=True)
    >>> found = processor(np.zeros((10, 12, 3), np.uint8), np.full((10, 12), 2), return_tensors="vt")
    >>> found.pixel_values.shape, found.labels.shape, int(found.labels[0, 0, 0])
    (votive.Size([1, 3, 16, 16]), votive.Size([1, 16, 16]), 1)
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"height": 512, "width": 512},
        "image_mean": IMAGENET_MEAN,
        "image_std": IMAGENET_STD,
        "do_reduce_labels": False,
    }
    do_reduce_labels: bool

    def __init__(self, **fields: Any) -> None:
        # Older files have a shorter name.
        old = fields.pop("reduce_labels", None)
        if old is not None:
            fields.setdefault("do_reduce_labels", old)
        super().__init__(**fields)

    def __call__(  # type: ignore[override]
        self, images: object, segmentation_maps: object = None, return_tensors: str | None = None, **changes: Any
    ) -> BatchFeature:
        return self.preprocess(images, segmentation_maps, return_tensors, **changes)

    def preprocess(  # type: ignore[override]
        self, images: object, segmentation_maps: object = None, return_tensors: str | None = None, **changes: Any
    ) -> BatchFeature:
        """`pixel_values` of pictures, and of maps (height, width) of classes `labels` of the same size.

        With `do_reduce_labels` class 0, the background, is 255, which counts in no loss, and all others are one less.
        """
        asked = self.asked(return_tensors, changes)
        found = super().preprocess(images, return_tensors, **changes)
        if segmentation_maps is not None:
            maps = [asked.classes(one) for one in pictures_of(segmentation_maps)]
            found["labels"] = asked.batch(maps, return_tensors)
        return found

    def classes(self, picture: object) -> np.ndarray:
        """The classes (height, width) of a map."""
        x = label_map(picture)
        if self.do_reduce_labels:
            x = np.where(np.isin(x, (0, 255)), 255, x - 1)
        if self.do_resize:
            x = nearest(x, target_size(x.shape, self.size))
        if self.do_center_crop:
            x = center_cropped(x[None], (self.crop_size["height"], self.crop_size["width"]))[0]
        return np.ascontiguousarray(x)

    def post_process_semantic_segmentation(
        self,
        outputs: Any,
        target_sizes: list[tuple[int, int]] | Tensor | None = None,
        return_segmentation_scores: bool = False,
    ) -> list[Tensor] | list[BatchFeature]:
        """The class of each pixel (height, width) of each picture, in `target_sizes` where they are given.

        With `return_segmentation_scores` a record with `segmentation` and `segmentation_scores` (classes, height,
        width) for each picture.
        """
        return semantic_maps(outputs.logits, target_sizes, return_segmentation_scores)
