"""What an image, a mask or boxes say about their size."""

from __future__ import annotations

from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, KeyPoints, Mask
from ...types import PILImage
from .kernels import PIL, functional


def _image(op: str, image: Tensor) -> tuple[int, int, int]:
    if image.ndim < 2:
        raise TypeError(f"{op}: an image has at least two dimensions, got {tuple(image.shape)}.")
    height, width = image.shape[-2:]
    return (1 if image.ndim == 2 else image.shape[-3]), height, width


@functional
def get_dimensions(inpt: Tensor) -> list[int]:
    """[channels, height, width] of an image.

    >>> votive.vision.transforms.functional.get_dimensions(votive.zeros(2, 3, 4, 5))
    [3, 4, 5]
    """
    return list(_image("get_dimensions", inpt))


@functional
def get_num_channels(inpt: Tensor) -> int:
    """The number of channels of an image.

    >>> votive.vision.transforms.functional.get_num_channels(votive.zeros(3, 4, 5))
    3
    """
    return _image("get_num_channels", inpt)[0]


@functional
def get_size(inpt: Tensor) -> list[int]:
    """[height, width] of an image, a mask, or the image that boxes belong to.

    >>> votive.vision.transforms.functional.get_size(votive.zeros(3, 4, 5))
    [4, 5]
    """
    return list(_image("get_size", inpt)[1:])


@get_dimensions.on(PIL)
def _dimensions_pil(image: PILImage) -> list[int]:
    return [len(image.getbands()), image.height, image.width]


@get_num_channels.on(PIL)
def _channels_pil(image: PILImage) -> int:
    return len(image.getbands())


@get_size.on(PIL)
def _size_pil(image: PILImage) -> list[int]:
    return [image.height, image.width]


@get_size.on(Mask)
def _size_mask(mask: Mask) -> list[int]:
    return list(mask.shape[-2:])


@get_size.on(BoundingBoxes, KeyPoints)
def _size_placed(inpt: BoundingBoxes | KeyPoints) -> list[int]:
    return list(inpt.canvas_size)


def get_image_size(inpt: object) -> list[int]:
    """[width, height] of an image: the other way round than `get_size`, as in torchvision.

    >>> votive.vision.transforms.functional.get_image_size(votive.zeros(3, 4, 5))
    [5, 4]
    """
    height, width = get_size(inpt)
    return [width, height]
