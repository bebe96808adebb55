"""Transforms of size and place without reading between pixels twice: resize, crop, pad, flip."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from ..tv_tensors import BoundingBoxes, KeyPoints, Mask
from ..types import FillByKind, Picture
from . import functional as F
from .base import RandomApplyTransform, Transform, has_any, integer, pair, query_size, uniform
from .functional.cropping import PaddingMode, check_padding_mode, sides
from .functional.interpolation import Interpolation, mode_of


class RandomHorizontalFlip(RandomApplyTransform):
    """Left becomes right with probability `p`.

    >>> votive.vision.transforms.RandomHorizontalFlip(p=1)(votive.tensor([[[1, 2]]]))
    tensor([[[2, 1]]])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.horizontal_flip, inpt)


class RandomVerticalFlip(RandomApplyTransform):
    """Up becomes down with probability `p`.

    >>> votive.vision.transforms.RandomVerticalFlip(p=1)(votive.tensor([[[1], [2]]])).flatten()
    tensor([2, 1])
    """

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.vertical_flip, inpt)


class Resize(Transform):
    """To `size` (height, width), or the shorter edge to `size`; see `functional.resize`.

    >>> votive.vision.transforms.Resize(4)(votive.zeros(3, 8, 16)).shape
    votive.Size([3, 4, 8])
    """

    def __init__(
        self,
        size: int | Sequence[int] | None,
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if size is None and not isinstance(max_size, int):
            raise ValueError(f"Resize: with size=None, max_size must be an int, got {max_size!r}.")
        if size is not None and not isinstance(size, int):
            if not isinstance(size, Sequence) or len(size) not in (1, 2):
                raise ValueError(f"Resize: size must be one or two ints or None, got {size!r}.")
        self.size = [size] if isinstance(size, int) else None if size is None else list(size)
        self.interpolation = mode_of("Resize", interpolation)
        self.max_size, self.antialias = max_size, antialias

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resize,
            inpt,
            self.size,
            interpolation=self.interpolation,
            max_size=self.max_size,
            antialias=self.antialias,
        )


class CenterCrop(Transform):
    """The middle; smaller images get a border of zeros first.

    >>> votive.vision.transforms.CenterCrop((2, 4))(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 2, 4])
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair("CenterCrop", "size", size)

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.center_crop, inpt, self.size)


class _Crops(Transform):
    """Several crops of one image; masks and boxes would have to be several too."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, BoundingBoxes, KeyPoints, Mask):
            raise TypeError(f"{type(self).__name__}: does not take BoundingBoxes, KeyPoints and Masks.")


class FiveCrop(_Crops):
    """The four corners and the middle, as a tuple.

    >>> len(votive.vision.transforms.FiveCrop(4)(votive.zeros(3, 8, 8)))
    5
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair("FiveCrop", "size", size)

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.five_crop, inpt, self.size)


class TenCrop(_Crops):
    """`FiveCrop` of the image and of its mirror image.

    >>> len(votive.vision.transforms.TenCrop(4)(votive.zeros(3, 8, 8)))
    10
    """

    def __init__(self, size: int | Sequence[int], vertical_flip: bool = False) -> None:
        super().__init__()
        self.size = pair("TenCrop", "size", size)
        self.vertical_flip = vertical_flip

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.ten_crop, inpt, self.size, vertical_flip=self.vertical_flip)


def _check_padding(name: str, padding: object, padding_mode: PaddingMode) -> None:
    try:
        given = sides(name, padding)
    except TypeError as e:
        raise ValueError(str(e)) from None
    if not all(isinstance(p, int) for p in given):
        raise ValueError(f"{name}: padding must be integers, got {padding}.")
    check_padding_mode(name, padding_mode)


class Pad(Transform):
    """A border; see `functional.pad`. `fill` may differ by kind of input, as a dict.

    >>> votive.vision.transforms.Pad([1, 2])(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 12, 10])
    """

    def __init__(
        self, padding: int | Sequence[int], fill: FillByKind = 0, padding_mode: PaddingMode = "constant"
    ) -> None:
        super().__init__()
        _check_padding("Pad", padding, padding_mode)
        self.padding = padding if isinstance(padding, int) else list(padding)
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.pad, inpt, padding=self.padding, fill=self._fill(inpt), padding_mode=self.padding_mode
        )


class RandomCrop(Transform):
    """A part of `size` at a random place, after an optional border.

    >>> votive.vision.transforms.RandomCrop(4, padding=1)(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: FillByKind = 0,
        padding_mode: PaddingMode = "constant",
    ) -> None:
        super().__init__()
        self.size = pair("RandomCrop", "size", size)
        _check_padding("RandomCrop", 0 if padding is None else padding, padding_mode)
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self._set_fill(fill)
        self.padding_mode = padding_mode

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        left, top, right, bottom = sides("RandomCrop", self.padding or 0)
        old_height, old_width = query_size(flat_inputs)
        height, width = self.size
        have_height, have_width = old_height + top + bottom, old_width + left + right
        if self.pad_if_needed:  # on both sides, so that the image may lie anywhere
            more = max(height - have_height, 0)
            top, bottom, have_height = top + more, bottom + more, have_height + 2 * more
            more = max(width - have_width, 0)
            left, right, have_width = left + more, right + more, have_width + 2 * more
        if have_height < height or have_width < width:
            raise ValueError(
                f"RandomCrop: the size {self.size} is larger than the image with its border, "
                f"{(have_height, have_width)}; use pad_if_needed=True."
            )
        return {
            "needs_pad": any((left, top, right, bottom)),
            "padding": [left, top, right, bottom],
            "needs_crop": have_height > height or have_width > width,
            "top": integer(0, have_height - height + 1),
            "left": integer(0, have_width - width + 1),
            "height": height,
            "width": width,
        }

    @staticmethod
    def get_params(img: Picture, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a random crop."""
        drawn = RandomCrop(output_size).make_params([img])
        return drawn["top"], drawn["left"], drawn["height"], drawn["width"]

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        if params["needs_pad"]:
            inpt = self._call_kernel(
                F.pad, inpt, padding=params["padding"], fill=self._fill(inpt), padding_mode=self.padding_mode
            )
        if params["needs_crop"]:
            place = {k: params[k] for k in ("top", "left", "height", "width")}
            inpt = self._call_kernel(F.crop, inpt, **place)
        return inpt


def random_area(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int]:
    """(first side, second side) of a rectangle with a random area and ratio, uniform in its log."""
    area = height * width * uniform(*scale)
    shape = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
    return round(math.sqrt(area * shape)), round(math.sqrt(area / shape))


def check_ranges(name: str, scale: Sequence[float], ratio: Sequence[float]) -> None:
    """Two ranges, or an error; a warning if one is upside down."""
    for what, value in (("scale", scale), ("ratio", ratio)):
        if not isinstance(value, Sequence) or len(value) != 2:
            raise TypeError(f"{name}: {what} must be a sequence of two numbers, got {value!r}.")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn(f"{name}: scale and ratio should be (min, max).", stacklevel=3)


class RandomResizedCrop(Transform):
    """A part with a random area and aspect ratio, resized; the usual one for training classifiers.

    >>> votive.vision.transforms.RandomResizedCrop(4)(votive.zeros(3, 8, 8)).shape
    votive.Size([3, 4, 4])
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Interpolation = F.InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = pair("RandomResizedCrop", "size", size)
        check_ranges("RandomResizedCrop", scale, ratio)
        self.scale, self.ratio = scale, ratio
        self.interpolation = mode_of("RandomResizedCrop", interpolation)
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = query_size(flat_inputs)
        for _ in range(10):
            w, h = random_area(height, width, self.scale, self.ratio)
            if 0 < w <= width and 0 < h <= height:
                top, left = integer(0, height - h + 1), integer(0, width - w + 1)
                return {"top": top, "left": left, "height": h, "width": w}
        # None fits: the middle, with the nearest ratio that is allowed.
        shape = width / height
        w, h = width, height
        if shape < min(self.ratio):
            h = round(w / min(self.ratio))
        elif shape > max(self.ratio):
            w = round(h * max(self.ratio))
        return {"top": (height - h) // 2, "left": (width - w) // 2, "height": h, "width": w}

    @staticmethod
    def get_params(img: Picture, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """(top, left, height, width) of a random part."""
        drawn = RandomResizedCrop(1, scale, ratio).make_params([img])
        return drawn["top"], drawn["left"], drawn["height"], drawn["width"]

    def transform(self, inpt: object, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.resized_crop, inpt, **params, size=self.size, interpolation=self.interpolation, antialias=self.antialias
        )
