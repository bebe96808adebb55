"""Parts of images, and images with a border: crop, pad, flip and what is made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ....core import dtype as dt
from ....nn import functional as NF
from ....ops.registry import F
from ....tensor import Tensor
from ...io.raw import pillow
from ...tv_tensors import BoundingBoxes, BoundingBoxFormat, KeyPoints, Mask, wrap
from ...types import Fill, PILImage, Size
from .boxes import Placed, shifted
from .interpolation import Interpolation, InterpolationMode
from .kernels import PIL, TENSOR, functional, on_masks, on_planes
from .resizing import resize
from .sizes import get_size

Border = tuple[int, int, int, int]  # left, top, right, bottom
PaddingMode = Literal["constant", "edge", "reflect", "symmetric"]
PADDING_MODES: tuple[PaddingMode, ...] = ("constant", "edge", "reflect", "symmetric")


# --- flips ---------------------------------------------------------------------------------------


@functional
def horizontal_flip(inpt: Tensor) -> Tensor:
    """Left becomes right.

    >>> votive.vision.transforms.functional.horizontal_flip(votive.tensor([[[1, 2, 3]]]))
    tensor([[[3, 2, 1]]])
    """
    return inpt.flip(-1)


@functional
def vertical_flip(inpt: Tensor) -> Tensor:
    """Up becomes down.

    >>> votive.vision.transforms.functional.vertical_flip(votive.tensor([[[1], [2]]]))
    tensor([[[2],
             [1]]])
    """
    return inpt.flip(-2)


@horizontal_flip.on(PIL)
def _hflip_pil(image: PILImage) -> PILImage:
    return image.transpose(pillow().Transpose.FLIP_LEFT_RIGHT)


@vertical_flip.on(PIL)
def _vflip_pil(image: PILImage) -> PILImage:
    return image.transpose(pillow().Transpose.FLIP_TOP_BOTTOM)


on_masks(horizontal_flip, vertical_flip)


def _mirrored(inpt: Placed, axis: int) -> Placed:
    """Boxes or points mirrored at the middle of the canvas along x (0) or y (1)."""
    extent = inpt.canvas_size[1 - axis]
    parts = list(F.unbind(inpt.as_tensor(), -1))
    if isinstance(inpt, KeyPoints):
        parts[axis] = extent - 1 - parts[axis]  # the centre of the first pixel becomes that of the last
    elif inpt.format is BoundingBoxFormat.XYXY:
        parts[axis], parts[axis + 2] = extent - parts[axis + 2], extent - parts[axis]
    elif inpt.format is BoundingBoxFormat.XYWH:
        parts[axis] = extent - parts[axis] - parts[axis + 2]
    else:
        parts[axis] = extent - parts[axis]
    return wrap(F.stack(parts, -1), like=inpt)


@horizontal_flip.on(BoundingBoxes, KeyPoints)
def _hflip_placed(inpt: Placed) -> Placed:
    return _mirrored(inpt, 0)


@vertical_flip.on(BoundingBoxes, KeyPoints)
def _vflip_placed(inpt: Placed) -> Placed:
    return _mirrored(inpt, 1)


# --- pad -----------------------------------------------------------------------------------------


def sides(op: str, padding: object) -> Border:
    """(left, top, right, bottom) from one number, (x, y) or all four."""
    listed = [padding] if isinstance(padding, int) else padding
    if not isinstance(listed, (list, tuple)):
        raise TypeError(f"{op}: padding must be an int or a sequence of ints, got {padding!r}.")
    if len(listed) not in (1, 2, 4):
        raise ValueError(f"{op}: padding must have 1, 2 or 4 elements, got {padding}.")
    left, top = listed[0], listed[1 % len(listed)]
    right, bottom = listed[2:] if len(listed) == 4 else (left, top)
    return left, top, right, bottom


def check_padding_mode(op: str, padding_mode: str) -> None:
    """Raise if there is no such way to fill a border."""
    if padding_mode not in PADDING_MODES:
        raise ValueError(f"{op}: padding_mode must be one of {PADDING_MODES}, got {padding_mode!r}.")


def _symmetric(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    """A border that repeats the edge, unlike that of reflect."""
    height, width = image.shape[-2:]
    for low, high, size, dim in ((left, right, width, -1), (top, bottom, height, -2)):
        at = np.pad(np.arange(size), (max(low, 0), max(high, 0)), "symmetric")
        at = at[max(-low, 0) : len(at) - max(-high, 0)]
        image = F.index_select(image, dim, F.tensor(at, device=image.device))
    return image


def _bordered(image: Tensor, border: Border, fill: float, padding_mode: PaddingMode) -> Tensor:
    """(N, C, H, W) with a border."""
    left, top, right, bottom = border
    if padding_mode == "symmetric":
        return _symmetric(image, *border)
    around = [left, right, top, bottom]
    if padding_mode == "constant":
        return NF.pad(image, around, value=float(fill))
    mode = "replicate" if padding_mode == "edge" else padding_mode
    if image.dtype.is_floating_point:
        return NF.pad(image, around, mode=mode)
    return NF.pad(image.to(dt.float32), around, mode=mode).to(image.dtype)


@functional
def pad(inpt: Tensor, padding: Size, fill: Fill = None, padding_mode: PaddingMode = "constant") -> Tensor:
    """A border of `padding`: one number, (left and right, top and bottom), or all four sides.

    Modes: constant (with `fill`, one value or one per channel), edge, reflect, symmetric. Negative
    padding cuts.

    >>> votive.vision.transforms.functional.pad(votive.ones(1, 1, 1), [1, 0], fill=5.0)
    tensor([[[5., 1., 5.]]])
    """
    check_padding_mode("pad", padding_mode)
    border = sides("pad", padding)
    shape = tuple(inpt.shape)
    values = [0] if fill is None else list(fill) if isinstance(fill, Sequence) else [fill]
    if len(values) > 1 and padding_mode != "constant":
        raise ValueError(f"pad: padding_mode {padding_mode!r} takes no fill per channel.")
    image = inpt.reshape(math.prod(shape[:-3]), *shape[-3:])
    if len(values) == 1:
        out = _bordered(image, border, values[0], padding_mode)
    else:
        if len(values) != shape[-3]:
            raise ValueError(f"pad: {len(values)} fill values for {shape[-3]} channels.")
        inside = _bordered(F.ones_like(image[:1, :1]), border, 0, "constant")
        colour = F.tensor([float(v) for v in values], device=inpt.device).to(inpt.dtype)
        plain = _bordered(image, border, 0, "constant")
        out = F.where(inside != 0, plain, colour.reshape(1, -1, 1, 1))
    return out.reshape(*shape[:-2], *out.shape[-2:])


@pad.on(Mask)
@on_planes
def _pad_mask(mask: Tensor, padding: Size, fill: Fill = None, padding_mode: PaddingMode = "constant") -> Tensor:
    if isinstance(fill, (list, tuple)):
        raise ValueError("pad: a mask takes one fill value.")
    return pad.kernels[TENSOR](mask, padding, fill, padding_mode)


@pad.on(BoundingBoxes, KeyPoints)
def _pad_placed(inpt: Placed, padding: Size, fill: Fill = None, padding_mode: PaddingMode = "constant") -> Placed:
    check_padding_mode("pad", padding_mode)
    if padding_mode != "constant":
        raise ValueError(f"pad: boxes and points do not follow padding_mode {padding_mode!r}.")
    left, top, right, bottom = sides("pad", padding)
    height, width = inpt.canvas_size
    return shifted(inpt, left, top, (height + top + bottom, width + left + right))


def pil_fill(op: str, image: PILImage, fill: Fill) -> Any:
    """`fill` as a colour that Pillow takes for this image."""
    bands = len(image.getbands())
    values: list[float] = list(fill) if isinstance(fill, Sequence) else [0 if fill is None else fill]
    if len(values) == 1:
        values = values * bands
    if len(values) != bands:
        raise ValueError(f"{op}: fill has {len(values)} values, the image {bands} channels.")
    colour = tuple(values if image.mode == "F" else map(int, values))
    return colour[0] if bands == 1 else colour


@pad.on(PIL)
def _pad_pil(image: PILImage, padding: Size, fill: Fill = None, padding_mode: PaddingMode = "constant") -> PILImage:
    from PIL import ImageOps

    check_padding_mode("pad", padding_mode)
    left, top, right, bottom = sides("pad", padding)
    if padding_mode == "constant":
        colour = pil_fill("pad", image, fill)
        out = ImageOps.expand(image, border=(left, top, right, bottom), fill=colour)
    else:
        array = np.asarray(image)
        rows = slice(max(-top, 0), array.shape[0] - max(-bottom, 0) or None)
        columns = slice(max(-left, 0), array.shape[1] - max(-right, 0) or None)
        around = [(max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))] + [(0, 0)] * (array.ndim - 2)
        out = pillow().fromarray(np.pad(array[rows, columns], around, padding_mode))
    if image.mode == "P" and (palette := image.getpalette()) is not None:
        out.putpalette(palette)
    return out


# --- crop ----------------------------------------------------------------------------------------


@functional
def crop(inpt: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    """The part of `height` x `width` from (top, left) on; 0 outside the picture.

    >>> image = votive.arange(9).reshape(1, 3, 3)
    >>> votive.vision.transforms.functional.crop(image, 1, 1, 3, 2)
    tensor([[[4, 5],
             [7, 8],
             [0, 0]]])
    """
    h, w = inpt.shape[-2:]
    bottom, right = top + height, left + width
    if top >= 0 and left >= 0 and bottom <= h and right <= w:
        return inpt[..., top:bottom, left:right]
    inner = inpt[..., max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)]
    around = [
        max(min(right, 0) - left, 0),
        max(right - max(w, left), 0),
        max(min(bottom, 0) - top, 0),
        max(bottom - max(h, top), 0),
    ]
    return NF.pad(inner, around)


@crop.on(PIL)
def _crop_pil(image: PILImage, top: int, left: int, height: int, width: int) -> PILImage:
    return image.crop((left, top, left + width, top + height))


@crop.on(BoundingBoxes, KeyPoints)
def _crop_placed(inpt: Placed, top: int, left: int, height: int, width: int) -> Placed:
    return shifted(inpt, -left, -top, (height, width))


def _pair(op: str, size: float | Sequence[int]) -> tuple[int, int]:
    """Two sides from one or two numbers."""
    if isinstance(size, (int, float)):
        return int(size), int(size)
    if len(size) not in (1, 2):
        raise ValueError(f"{op}: size must be a number or have 1 or 2 elements, got {size}.")
    return int(size[0]), int(size[-1])


def _centre(old: Sequence[int], height: int, width: int) -> tuple[int, int]:
    """Where a crop in the middle begins; Python's rounding, to even, is torchvision's."""
    return round((old[0] - height) / 2.0), round((old[1] - width) / 2.0)


def _missing(old: Sequence[int], height: int, width: int) -> list[int]:
    """The border that an image needs before it can be cropped to this size."""
    h, w = max(height - old[0], 0), max(width - old[1], 0)
    return [w // 2, h // 2, (w + 1) // 2, (h + 1) // 2]


@functional
def center_crop(inpt: Tensor, output_size: Size) -> Tensor:
    """The middle; smaller images get a border of zeros first.

    >>> image = votive.arange(16).reshape(1, 4, 4)
    >>> votive.vision.transforms.functional.center_crop(image, 2)
    tensor([[[ 5,  6],
             [ 9, 10]]])
    """
    height, width = _pair("center_crop", output_size)
    border = _missing(inpt.shape[-2:], height, width)
    if any(border):
        left, top, right, bottom = border
        inpt = NF.pad(inpt, [left, right, top, bottom])
    top, left = _centre(inpt.shape[-2:], height, width)
    return inpt[..., top : top + height, left : left + width]


@center_crop.on(PIL)
def _center_crop_pil(image: PILImage, output_size: Size) -> PILImage:
    height, width = _pair("center_crop", output_size)
    border = _missing((image.height, image.width), height, width)
    if any(border):
        image = _pad_pil(image, border, fill=0)
    top, left = _centre((image.height, image.width), height, width)
    return _crop_pil(image, top, left, height, width)


on_masks(crop, center_crop)


@center_crop.on(BoundingBoxes, KeyPoints)
def _center_crop_placed(inpt: Placed, output_size: Size) -> Placed:
    height, width = _pair("center_crop", output_size)
    top, left = _centre(inpt.canvas_size, height, width)
    return shifted(inpt, -left, -top, (height, width))


@functional
def resized_crop(
    inpt: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Size,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    """`crop`, then `resize`.

    >>> image = votive.zeros(3, 8, 8)
    >>> votive.vision.transforms.functional.resized_crop(image, 1, 1, 4, 6, (2, 2)).shape
    votive.Size([3, 2, 2])
    """
    return resize(crop(inpt, top, left, height, width), size, interpolation, antialias=antialias)


resized_crop.on(PIL, Mask, BoundingBoxes, KeyPoints)(resized_crop.kernels[TENSOR])


@functional
def five_crop(inpt: Tensor, size: Size) -> tuple[Tensor, ...]:
    """The four corners and the middle: upper left, upper right, lower left, lower right, centre.

    >>> crops = votive.vision.transforms.functional.five_crop(votive.zeros(1, 5, 5), 3)
    >>> len(crops), crops[0].shape
    (5, votive.Size([1, 3, 3]))
    """
    height, width = _pair("five_crop", size)
    h, w = get_size(inpt)
    if height > h or width > w:
        raise ValueError(f"five_crop: size {(height, width)} is larger than the image, {(h, w)}.")
    places = ((0, 0), (0, w - width), (h - height, 0), (h - height, w - width))
    corners = tuple(crop(inpt, top, left, height, width) for top, left in places)
    return (*corners, center_crop(inpt, (height, width)))


@functional
def ten_crop(inpt: Tensor, size: Size, vertical_flip: bool = False) -> tuple[Tensor, ...]:
    """`five_crop` of the image and of its mirror image.

    >>> len(votive.vision.transforms.functional.ten_crop(votive.zeros(1, 5, 5), 3))
    10
    """
    flip = _FLIPS[bool(vertical_flip)]
    return five_crop(inpt, size) + five_crop(flip(inpt), size)


_FLIPS = (horizontal_flip, vertical_flip)
for _fn in (five_crop, ten_crop):
    _fn.on(PIL)(_fn.kernels[TENSOR])
