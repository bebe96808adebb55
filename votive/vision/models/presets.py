"""How pictures are prepared for the networks here, and what their 1000 classes are called.

The steps are those of torchvision's classification presets, on pillow images: the shorter side to a
length, the middle, values from 0 to 1, normalised.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

import votive

from ...models.pixels import channels_first, resized, target_size
from ...tensor import Tensor
from ..types import Picture

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Networks that do not want 224 pixels cut from 256: the size to resize to, and the filter.
_OTHER = {"vit_l_16": (242, 2), "vit_h_14": (224, 3)}
_LITE = {f"efficientnet_lite{i}": n for i, n in enumerate((224, 240, 260, 280, 300))}


class ImageClassification:
    """Pictures as tensors (3, crop_size, crop_size), as ImageNet's networks want them.

    A picture is a path, a pillow image, or an array or tensor with channels first or last.
    `interpolation` is pillow's number of a filter: 2 bilinear, 3 bicubic.

    >>> prepare = votive.vision.models.ImageClassification(crop_size=8, resize_size=10)
    >>> prepare(np.zeros((20, 30, 3), np.uint8)).shape
    votive.Size([3, 8, 8])
    """

    def __init__(
        self,
        *,
        crop_size: int = 224,
        resize_size: int = 256,
        mean: Sequence[float] = _MEAN,
        std: Sequence[float] = _STD,
        interpolation: int = 2,
    ) -> None:
        if crop_size > resize_size:
            raise ValueError(
                f"ImageClassification: a middle of {crop_size} pixels does not fit into resize_size={resize_size}."
            )
        self.crop_size, self.resize_size, self.interpolation = crop_size, resize_size, interpolation
        self.mean, self.std = tuple(mean), tuple(std)

    def __call__(self, picture: Picture | str | os.PathLike[str] | np.ndarray) -> Tensor:
        x = channels_first(picture, rgb=True)
        x = resized(x, target_size(x.shape[1:], {"shortest_edge": self.resize_size}), self.interpolation)
        # Half pixels are rounded to even, which is not how other libraries find the middle.
        top, left = (round((n - self.crop_size) / 2.0) for n in x.shape[1:])
        x = x[:, top : top + self.crop_size, left : left + self.crop_size]
        x = x.astype(np.float32) / np.float32(255) if x.dtype == np.uint8 else x
        mean, std = (np.array(v, np.float32)[:, None, None] for v in (self.mean, self.std))
        return votive.from_numpy(np.ascontiguousarray((x - mean) / std))

    def __repr__(self) -> str:
        return f"ImageClassification(crop_size={self.crop_size}, resize_size={self.resize_size})"


def preset(name: str) -> ImageClassification:
    """How pictures are prepared for the network of a name.

    >>> votive.vision.models.preset("resnet18")
    ImageClassification(crop_size=224, resize_size=256)
    """
    if name in _LITE:
        # From TensorFlow's `efficientnet/lite`: bicubic, a margin of 32, values from -1 to 1.
        size = _LITE[name]
        return ImageClassification(
            crop_size=size, resize_size=size + 32, interpolation=3, mean=(127.0 / 255,) * 3, std=(128.0 / 255,) * 3
        )
    if name in _OTHER:
        size, interpolation = _OTHER[name]
        return ImageClassification(resize_size=size, interpolation=interpolation)
    if name == "unet":
        raise ValueError("preset: a U-Net classifies pixels, not pictures, so there is no preset for it.")
    return ImageClassification()


@cache
def imagenet_classes() -> list[str]:
    """Short names of ImageNet's 1000 classes, in the order of the scores.

    >>> votive.vision.models.imagenet_classes()[207]
    'golden retriever'
    """
    return (Path(__file__).parent / "imagenet_classes.txt").read_text().splitlines()
