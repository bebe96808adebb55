"""From files' images to tensors and back, and from one dtype to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....ops.registry import F
from ....surface.interchange import from_numpy
from ....tensor import Tensor
from ...io.raw import pillow
from ...tv_tensors import Image, Mask
from ...types import PILImage
from .kernels import functional, is_pil

Array = np.ndarray[Any, Any]

_BITS = {dt.uint8: 8, dt.int8: 7, dt.int16: 15, dt.uint16: 16, dt.int32: 31, dt.int64: 63}
# What PIL's modes of more than 8 bits, or less, hold.
_PIL_ARRAYS = {"I": np.int32, "I;16": np.int16, "I;16B": np.int16, "F": np.float32}
_EPS = 1e-3


def value_bits(op: str, dtype: dt.dtype) -> int:
    """How many bits of an integer type say something about its value."""
    if dtype not in _BITS:
        raise TypeError(f"{op}: integer types are {[str(d) for d in _BITS]}, got {dtype}.")
    return _BITS[dtype]


def max_value(dtype: dt.dtype) -> int:
    """What white is: the largest integer, or 1."""
    return (1 << _BITS[dtype]) - 1 if dtype in _BITS else 1


def _pil_array(image: PILImage) -> Array:
    """(H, W, C) values of a PIL image."""
    if image.mode == "1":
        array = np.array(image, np.uint8) * 255
    elif image.mode.startswith("I;16"):
        array = np.array(image, np.uint16)
    else:
        array = np.array(image, _PIL_ARRAYS.get(image.mode, np.uint8), copy=True)
    return array.reshape(image.height, image.width, len(image.getbands()))


def pil_to_tensor(pic: PILImage) -> Tensor:
    """A PIL image as a tensor (C, H, W) of the same type, values untouched.

    >>> import PIL.Image
    >>> votive.vision.transforms.functional.pil_to_tensor(PIL.Image.new("RGB", (4, 2))).shape
    votive.Size([3, 2, 4])
    """
    if not is_pil(pic):
        raise TypeError(f"pil_to_tensor: needs a PIL image, got {type(pic).__name__}.")
    size, bands = (pic.height, pic.width), len(pic.getbands())
    array = np.array(pic, copy=True)
    return from_numpy(np.ascontiguousarray(array.reshape(*size, bands).transpose(2, 0, 1)))


def to_tensor(inpt: PILImage | Array) -> Tensor:
    """A PIL image or (H, W, C) array as a tensor (C, H, W); bytes become floats in 0..1.

    >>> votive.vision.transforms.functional.to_tensor(np.full((1, 1, 1), 255, np.uint8))
    tensor([[[1.]]])
    """
    if isinstance(inpt, np.ndarray):
        if inpt.ndim not in (2, 3):
            raise ValueError(f"to_tensor: an array must be (H, W) or (H, W, C), got {inpt.shape}.")
        array = inpt[:, :, None] if inpt.ndim == 2 else inpt
    elif is_pil(inpt):
        array = _pil_array(inpt)
        if inpt.mode.startswith("I;16"):
            array = array.astype(np.int16)
    else:
        raise TypeError(f"to_tensor: needs a PIL image or an array, got {type(inpt).__name__}.")
    image = from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))
    if image.dtype is dt.uint8:
        return image.to(dt.get_default_dtype()) / 255
    return image


def to_image(inpt: Tensor | PILImage | Array) -> Image:
    """A PIL image, an (H, W, C) array or a tensor as a tensor that says it is an image.

    >>> votive.vision.transforms.functional.to_image(np.zeros((2, 4, 3), np.uint8)).shape
    votive.Size([3, 2, 4])
    """
    if isinstance(inpt, np.ndarray):
        array = inpt[:, :, None] if inpt.ndim == 2 else inpt
        made = from_numpy(np.ascontiguousarray(np.moveaxis(array, -1, -3)))
    elif isinstance(inpt, Tensor):
        made = inpt
    elif is_pil(inpt):
        made = pil_to_tensor(inpt)
    else:
        raise TypeError(f"to_image: needs a tensor, an array or a PIL image, got {type(inpt).__name__}.")
    return made if isinstance(made, Image) else Image(made)


def _mode_for(array: Array, mode: str | None) -> str:
    """The mode of a PIL image for (H, W, C) values, checked against the one that is wanted."""
    channels = array.shape[2]
    plain = {
        np.dtype(np.uint8): "L",
        np.dtype(np.int16): "I;16",
        np.dtype(np.uint16): "I;16",
        np.dtype(np.int32): "I",
        np.dtype(np.float32): "F",
    }
    if channels == 1:
        found = plain.get(array.dtype)
        if found is None:
            raise TypeError(f"to_pil_image: values of type {array.dtype} are not supported.")
        allowed: tuple[str, ...] = (found,)
    else:
        if array.dtype != np.uint8:
            raise TypeError(f"to_pil_image: images with {channels} channels must be bytes, got {array.dtype}.")
        choices = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
        if channels not in choices:
            raise ValueError(f"to_pil_image: needs 1 to 4 channels, got {channels}.")
        allowed = choices[channels]
    if mode is not None and mode not in allowed:
        raise ValueError(f"to_pil_image: mode {mode!r} does not fit; allowed are {allowed}.")
    return mode or allowed[0]


def to_pil_image(pic: Tensor | Array, mode: str | None = None) -> PILImage:
    """A tensor (C, H, W) or (H, W), or an (H, W, C) array, as a PIL image; floats in 0..1.

    >>> votive.vision.transforms.functional.to_pil_image(votive.ones(3, 2, 4)).getpixel((0, 0))
    (255, 255, 255)
    """
    if isinstance(pic, Tensor):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_pil_image: needs (C, H, W) or (H, W), got {tuple(pic.shape)}.")
        image = pic.detach()
        image = image.unsqueeze(0) if image.ndim == 2 else image
        image = image.float() if image.dtype in dt.HALF else image
        array = np.moveaxis(image.numpy(force=True), 0, -1)
    elif isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"to_pil_image: needs (H, W) or (H, W, C), got {pic.shape}.")
        array = pic[:, :, None] if pic.ndim == 2 else pic
    else:
        raise TypeError(f"to_pil_image: needs a tensor or an array, got {type(pic).__name__}.")
    Pillow = pillow()
    if array.dtype.kind == "f" and mode != "F":
        array = (array * 255).astype(np.uint8)
    wanted = _mode_for(array, mode)
    array = np.ascontiguousarray(array[:, :, 0] if array.shape[2] == 1 else array)
    if wanted == "I;16":
        array = array.astype(np.uint16)
    made = Pillow.fromarray(array)
    if made.mode == wanted:
        return made
    # Same bytes, other meaning (RGB bytes that are HSV): not a conversion of colours.
    return Pillow.frombytes(wanted, made.size, array.tobytes())


# --- dtypes --------------------------------------------------------------------------------------


def _scaled(image: Tensor, dtype: dt.dtype) -> Tensor:
    """Values that mean the same in another type: 0..1 for floats, 0..max for integers."""
    op, kind = "to_dtype", image.dtype
    if kind.is_floating_point:
        if dtype.is_floating_point:
            return image.to(dtype)
        value_bits(op, dtype)
        unsafe = {dt.float32: (dt.int32, dt.int64), dt.float64: (dt.int64,)}
        if dtype in unsafe.get(kind, ()):
            raise RuntimeError(f"{op}: {kind} cannot be converted to {dtype} safely.")
        # All integers get equal shares of 0..1; rounding would halve those of the first and last.
        return (image * (max_value(dtype) + 1.0 - _EPS)).to(dtype)
    bits = value_bits(op, kind)
    if dtype.is_floating_point:
        return image.to(dtype) * (1.0 / max_value(kind))
    shift = bits - value_bits(op, dtype)
    if shift > 0:
        if kind is dt.uint16:
            image = image.to(dt.int32)
        return F.bitwise_right_shift(image, shift).to(dtype)
    if dtype is dt.uint16:
        return F.bitwise_left_shift(image.to(dt.int32), -shift).to(dtype)
    return F.bitwise_left_shift(image.to(dtype), -shift)


@functional
def to_dtype(inpt: Tensor, dtype: dt.dtype = dt.float32, scale: bool = False) -> Tensor:
    """Values in another type; `scale` keeps their meaning (255 as a byte is 1.0 as a float).

    >>> image = votive.tensor([[[0, 255]]], dtype=votive.uint8)
    >>> votive.vision.transforms.functional.to_dtype(image, votive.float32, scale=True)
    tensor([[[0., 1.]]])
    """
    if inpt.dtype is dtype:
        return inpt
    return _scaled(inpt, dtype) if scale else inpt.to(dtype)


@to_dtype.on(Mask)
def _mask_to_dtype(mask: Mask, dtype: dt.dtype = dt.float32, scale: bool = False) -> Mask:
    return mask.to(dtype)  # labels have no scale


def convert_image_dtype(image: Tensor, dtype: dt.dtype = dt.float32) -> Tensor:
    """`to_dtype` with scaling, under its old name.

    >>> image = votive.tensor([[[1.0]]])
    >>> votive.vision.transforms.functional.convert_image_dtype(image, votive.uint8)
    tensor([[[255]]], dtype=votive.uint8)
    """
    return to_dtype(image, dtype, scale=True)
