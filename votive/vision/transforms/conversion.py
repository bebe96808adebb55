"""Transforms between files' images, tensors and types."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...tensor import Tensor
from ..tv_tensors import Image, TVTensor, Video
from . import functional as F
from .base import Transform
from .functional.kernels import is_pil, is_pure_tensor


def _is_array(inpt: object) -> bool:
    return isinstance(inpt, np.ndarray)


class ToTensor(Transform):
    """PIL images and (H, W, C) arrays as tensors (C, H, W), bytes as floats in 0..1.

    The same as `ToImage` and `ToDtype(float32, scale=True)`, which say it in two words.

    >>> votive.vision.transforms.ToTensor()(np.full((1, 1, 3), 255, np.uint8)).flatten()
    tensor([1., 1., 1.])
    """

    _transformed_types = (is_pil, _is_array)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_tensor(inpt)


class PILToTensor(Transform):
    """PIL images as tensors (C, H, W), values untouched.

    >>> import PIL.Image
    >>> votive.vision.transforms.PILToTensor()(PIL.Image.new("L", (4, 2))).shape
    votive.Size([1, 2, 4])
    """

    _transformed_types = (is_pil,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.pil_to_tensor(inpt)


class ToImage(Transform):
    """PIL images, arrays and plain tensors as tensors that say they are images.

    >>> type(votive.vision.transforms.ToImage()(np.zeros((2, 4, 3), np.uint8))).__name__
    'Image'
    """

    _transformed_types = (is_pure_tensor, is_pil, _is_array)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPILImage(Transform):
    """Tensors and arrays as PIL images.

    >>> votive.vision.transforms.ToPILImage()(votive.zeros(3, 2, 4)).size
    (4, 2)
    """

    _transformed_types = (is_pure_tensor, Image, _is_array)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_pil_image(inpt, mode=self.mode)


class ToPureTensor(Transform):
    """Images, masks and boxes as plain tensors.

    >>> image = votive.vision.tv_tensors.Image([[1.0]])
    >>> votive.vision.transforms.ToPureTensor()(image)
    tensor([[[1.]]])
    """

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_tensor()


class ToDtype(Transform):
    """Images in another type; a dict by kind of input converts masks and boxes too.

    `scale` keeps the meaning of values: 255 as a byte is 1.0 as a float.

    >>> image = votive.full((1, 1, 1), 255, dtype=votive.uint8)
    >>> votive.vision.transforms.ToDtype(votive.float32, scale=True)(image)
    tensor([[[1.]]])
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: dt.dtype | dict[type | str, dt.dtype | None], scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, dt.dtype)):
            raise ValueError(f"ToDtype: dtype must be a dtype or a dict, got {dtype!r}.")
        if isinstance(dtype, dict) and Tensor in dtype and (Image in dtype or Video in dtype):
            warnings.warn(
                "ToDtype: a plain tensor beside an Image or Video is not transformed, whatever the dict says about it.",
                stacklevel=2,
            )
        self.dtype, self.scale = dtype, scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        picture = is_pure_tensor(inpt) or isinstance(inpt, (Image, Video))
        if not isinstance(self.dtype, dict):
            return F.to_dtype(inpt, self.dtype, self.scale) if picture else inpt
        if type(inpt) not in self.dtype and "others" not in self.dtype:
            raise ValueError(
                f"ToDtype: the dict has no dtype for {type(inpt).__name__}; add one, or one for "
                '"others" (None leaves them).'
            )
        wanted = self.dtype.get(type(inpt), self.dtype.get("others"))
        if wanted is None:
            if self.scale and picture:
                warnings.warn("ToDtype: scale without a dtype for images does nothing.", stacklevel=2)
            return inpt
        return F.to_dtype(inpt, wanted, self.scale) if picture else inpt.to(wanted)


class ConvertImageDtype(Transform):
    """Images in another type, scaled; `ToDtype` under its old name.

    >>> votive.vision.transforms.ConvertImageDtype(votive.uint8)(votive.ones(1, 1, 1))
    tensor([[[255]]], dtype=votive.uint8)
    """

    def __init__(self, dtype: dt.dtype = dt.float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)
