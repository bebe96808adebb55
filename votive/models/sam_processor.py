"""Pictures, points and boxes as SAM takes them, and its masks in the size of the pictures. Knows no model.

Results are those of transformers' SamImageProcessor and SamProcessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .image_processing import BatchFeature, ImageProcessor
from .image_processors import IMAGENET_MEAN, IMAGENET_STD
from .pixels import channels_first, pictures_of, resized
from .processing import Processor
from .segmenting import label_map, nearest

Pair = tuple[int, int]
_PADDING = -10


def fitted(size: Pair, longest: int) -> Pair:
    """Height and width of a picture whose longer side becomes `longest`.

    >>> from votive.models.sam_processor import fitted
    >>> fitted((30, 20), 60)
    (60, 40)
    """
    scale = longest / max(size)
    return int(size[0] * scale + 0.5), int(size[1] * scale + 0.5)


class SamImageProcessor(ImageProcessor):
    """Of SAM: the longer side to 1024 pixels, then padding on the right and below.

    >>> found = votive.models.SamImageProcessor(size={"longest_edge": 32}, pad_size={"height": 32, "width": 32})(
    ...     np.zeros((20, 40, 3), np.uint8), return_tensors="vt")
    >>> found.pixel_values.shape, found.original_sizes.tolist(), found.reshaped_input_sizes.tolist()
    (votive.Size([1, 3, 32, 32]), [[20, 40]], [[16, 32]])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **ImageProcessor.defaults,
        "size": {"longest_edge": 1024},
        "image_mean": IMAGENET_MEAN,
        "image_std": IMAGENET_STD,
        "do_convert_rgb": True,
        "do_pad": True,
        "pad_size": {"height": 1024, "width": 1024},
        "mask_size": {"longest_edge": 256},
        "mask_pad_size": {"height": 256, "width": 256},
    }
    square = False
    do_pad: bool
    pad_size: dict[str, int]
    mask_size: dict[str, int]
    mask_pad_size: dict[str, int]

    def __init__(self, **fields: Any) -> None:
        for name in ("size", "mask_size"):
            if isinstance(fields.get(name), int):
                fields[name] = {"longest_edge": fields[name]}
        asked = fields.get("size", self.defaults["size"])
        if set(asked) != {"longest_edge"}:
            raise ValueError(f"SamImageProcessor: size must be {{'longest_edge': number}}, got {asked}.")
        # The longest side alone is no size that other processors know.
        super().__init__(**{**fields, "size": {"height": 1, "width": 1}})
        self.size = dict(asked)

    def sized(self, x: np.ndarray) -> np.ndarray:
        """A picture whose longer side is as long as asked."""
        return resized(x, fitted((x.shape[1], x.shape[2]), self.size["longest_edge"]), self.resample)

    def preprocess(
        self, images: object, return_tensors: str | None = None, segmentation_maps: Any = None, **changes: Any
    ) -> BatchFeature:
        """`pixel_values`, `original_sizes` and `reshaped_input_sizes`; of maps of masks the `labels` of a loss."""
        asked = self.asked(return_tensors, changes)
        pictures = pictures_of(images)
        made = [asked.one(picture) for picture in pictures]
        before = [channels_first(picture, asked.do_convert_rgb).shape[1:] for picture in pictures]
        sizes = [np.array(x.shape[1:], np.int64) for x in made]
        if asked.do_pad:
            made = [_padded(x, asked.pad_size) for x in made]
        found = BatchFeature(pixel_values=asked.batch(made, return_tensors))
        found["original_sizes"] = asked.batch([np.array(size, np.int64) for size in before], return_tensors)
        found["reshaped_input_sizes"] = asked.batch(sizes, return_tensors)
        if segmentation_maps is not None:
            maps = [asked.labels(one) for one in pictures_of(segmentation_maps)]
            found["labels"] = asked.batch(maps, return_tensors)
        return found

    def labels(self, picture: object) -> np.ndarray:
        """A map of masks in the size of the model's answers."""
        x = label_map(picture)
        if self.do_resize:
            x = nearest(x, fitted((x.shape[0], x.shape[1]), self.mask_size["longest_edge"]))
        return _padded(x, self.mask_pad_size) if self.do_pad else x

    def post_process_masks(
        self,
        masks: Any,
        original_sizes: Any,
        reshaped_input_sizes: Any,
        mask_threshold: float = 0.0,
        binarize: bool = True,
        pad_size: dict[str, int] | None = None,
    ) -> list[Tensor]:
        """Masks of each picture in its own size: true inside, or with `binarize=False` scores."""
        room = self.pad_size if pad_size is None else pad_size
        found = []
        for own, before, inside in zip(masks, _pairs(original_sizes), _pairs(reshaped_input_sizes), strict=True):
            x = own if isinstance(own, Tensor) else votive.from_numpy(np.asarray(own, np.float32))
            x = F.interpolate(x, size=(room["height"], room["width"]), mode="bilinear", align_corners=False)
            x = x[..., : inside[0], : inside[1]]
            x = F.interpolate(x, size=before, mode="bilinear", align_corners=False)
            found.append(x > mask_threshold if binarize else x)
        return found


def _pairs(sizes: Any) -> list[Pair]:
    each = sizes.tolist() if hasattr(sizes, "tolist") else sizes
    return [(int(one[0]), int(one[1])) for one in each]


def _padded(x: np.ndarray, room: dict[str, int]) -> np.ndarray:
    down, right = room["height"] - x.shape[-2], room["width"] - x.shape[-1]
    if down < 0 or right < 0:
        raise ValueError(f"SamImageProcessor: a picture of {x.shape[-2:]} does not fit into {room}.")
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, down), (0, right)])


class SamProcessor(Processor):
    """Pictures with points and boxes, which are given in pixels of the pictures.

    >>> processor = votive.models.SamProcessor(votive.models.SamImageProcessor())
    >>> found = processor(np.zeros((512, 256, 3), np.uint8), input_points=[[[10, 20]]], return_tensors="vt")
    >>> found.input_points.tolist()
    [[[[20.0, 40.0]]]]
    """

    def __init__(self, image_processor: Any, tokenizer: Any = None) -> None:
        if tokenizer is not None:
            raise TypeError("SamProcessor: SAM reads no texts; leave the tokenizer out.")
        super().__init__(image_processor, None)

    @classmethod
    def from_pretrained(cls, name: Any, **changes: Any) -> SamProcessor:
        """From a folder or a repository id; `changes` replace fields of the image processor."""
        return cls(SamImageProcessor.from_pretrained(name, **changes))

    def __call__(
        self,
        images: Any = None,
        segmentation_maps: Any = None,
        input_points: Any = None,
        input_labels: Any = None,
        input_boxes: Any = None,
        return_tensors: str | None = None,
        **changes: Any,
    ) -> BatchFeature:
        """Points are lists of x and y for each picture, or for each prompt of each picture; labels tell 1 or 0 of each.

        Boxes are lists of left, top, right and bottom for each picture.
        """
        if images is None:
            raise ValueError("SamProcessor: give images.")
        found: BatchFeature = self.image_processor.preprocess(images, return_tensors, segmentation_maps, **changes)
        sizes = _pairs(found["original_sizes"])
        longest = changes.get("size", self.image_processor.size)["longest_edge"]
        labels = None if input_labels is None else [np.asarray(one, np.int64) for one in _listed(input_labels)]
        if input_points is not None:
            points = self._moved(input_points, sizes, longest, 2)
            points, labels = _evened(points, labels)
            found["input_points"] = _given(np.stack(points), 4, return_tensors)
        if labels is not None:
            found["input_labels"] = _given(np.stack(labels), 3, return_tensors)
        if input_boxes is not None:
            boxes = self._moved(input_boxes, sizes, longest, 4)
            found["input_boxes"] = _given(np.stack(boxes), 3, return_tensors)
        return found

    def _moved(self, places: Any, sizes: list[Pair], longest: int, width: int) -> list[np.ndarray]:
        """Places of each picture in pixels of the resized one."""
        each = [np.asarray(one, np.float64) for one in _listed(places)]
        if any(one.shape[-1:] != (width,) or one.ndim < 2 for one in each):
            what = "points are x and y" if width == 2 else "boxes are left, top, right and bottom"
            raise ValueError(f"SamProcessor: {what}, got shapes {[one.shape for one in each]}.")
        of = sizes if len(sizes) == len(each) else [sizes[0]] * len(each)
        out = []
        for one, before in zip(each, of, strict=True):
            after = fitted(before, longest)
            scale = np.array([after[1] / before[1], after[0] / before[0]] * (width // 2))
            out.append(one * scale)
        return out

    def post_process_masks(self, *args: Any, **options: Any) -> list[Tensor]:
        """Masks in the size of the pictures, by the image processor."""
        found: list[Tensor] = self.image_processor.post_process_masks(*args, **options)
        return found


def _listed(values: Any) -> Sequence[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], list | np.ndarray):
        raise ValueError("SamProcessor: points, labels and boxes are lists with one list for each picture.")
    return listed


def _evened(points: list[np.ndarray], labels: list[np.ndarray] | None) -> tuple[list[np.ndarray], Any]:
    """Pictures with fewer points than others get points that are not there."""
    if len({one.shape for one in points}) == 1:
        return points, labels
    if labels is None:
        raise ValueError("SamProcessor: pictures have different numbers of points, so input_labels are needed.")
    most = max(len(one) for one in points)
    more = [most - len(one) for one in points]
    points = [np.pad(one, [(0, n), (0, 0)], constant_values=_PADDING) for one, n in zip(points, more, strict=True)]
    return points, [np.pad(one, (0, n), constant_values=_PADDING) for one, n in zip(labels, more, strict=True)]


def _given(values: np.ndarray, dims: int, return_tensors: str | None) -> Any:
    """With a dimension for prompts, of which there is one where none is told."""
    if return_tensors != "vt":
        return values
    values = values.astype(np.float32) if values.dtype == np.float64 else values
    return votive.from_numpy(values if values.ndim == dims else values[:, None])
