"""Images, masks and boxes in another size."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ....core import dtype as dt
from ....nn import functional as NF
from ....ops.registry import F
from ...tv_tensors import BoundingBoxes, Mask, wrap
from .interpolation import InterpolationMode, mode_of, pil_number
from .kernels import PIL, functional, on_planes

_SMOOTH = (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC, InterpolationMode.LANCZOS)
_NEAREST = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)


def new_size(old: Sequence[int], size: Any, max_size: int | None = None) -> tuple[int, int]:
    """(height, width) after resizing: both given, or the shorter edge, or the longer one."""
    height, width = old
    short, long = min(height, width), max(height, width)
    if size is None:
        if not isinstance(max_size, int):
            raise ValueError(f"resize: with size=None, max_size must be an int, got {max_size!r}.")
        scaled = (int(max_size * short / long), max_size)
    else:
        wanted = (size,) if isinstance(size, int) else tuple(size)
        if len(wanted) == 2:
            if max_size is not None:
                raise ValueError(
                    f"resize: max_size is for a size that names the shorter edge only, got both edges {wanted}."
                )
            return int(wanted[0]), int(wanted[1])
        if len(wanted) != 1:
            raise ValueError(f"resize: size must be an int or have 1 or 2 elements, got {size}.")
        edge = int(wanted[0])
        scaled = (edge, int(edge * long / short))
        if max_size is not None:
            if max_size <= edge:
                raise ValueError(f"resize: max_size = {max_size} must be greater than the shorter edge {edge}.")
            if scaled[1] > max_size:
                scaled = (int(max_size * scaled[0] / scaled[1]), max_size)
    return (scaled[1], scaled[0]) if width <= height else scaled


def _interpolated(image: Any, size: tuple[int, int], mode: InterpolationMode, smooth: bool) -> Any:
    """(N, C, H, W) in another size, computed in a type that can be, then cast back."""
    kind = image.dtype
    fine = (dt.float32, dt.float64, dt.uint8)
    work = image if kind in fine else image.to(dt.float32)
    align = False if mode in _SMOOTH else None
    out = NF.interpolate(work, size=size, mode=mode.value, align_corners=align, antialias=smooth)
    if kind in fine:
        return out
    return out.to(kind) if kind.is_floating_point else F.round(out).to(kind)


@functional
def resize(
    inpt: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    """To `size` (height, width), or with the shorter edge `size`, or the longer one `max_size`.

    With `antialias`, bilinear and bicubic filters widen when shrinking, as Pillow's always do.

    >>> image = votive.zeros(3, 20, 40)
    >>> votive.vision.transforms.functional.resize(image, 10).shape
    votive.Size([3, 10, 20])
    """
    mode = mode_of("resize", interpolation)
    if mode not in (*_SMOOTH, *_NEAREST):
        raise NotImplementedError(f"resize: {mode.value!r} is for PIL images only.")
    if mode is InterpolationMode.LANCZOS and not antialias:
        raise ValueError("resize: 'lanczos' needs antialias=True.")
    shape = tuple(inpt.shape)
    size = new_size(shape[-2:], size, max_size)
    if size == shape[-2:]:
        return inpt
    if 0 in shape:
        return inpt.reshape(*shape[:-2], *size)
    smooth = bool(antialias) and mode in _SMOOTH
    out = _interpolated(inpt.reshape(-1, *shape[-3:]), size, mode, smooth)
    return out.reshape(*shape[:-2], *size)


@resize.on(PIL)
def resize_pil(
    image: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    if antialias is False:
        warnings.warn("resize: Pillow always uses antialiasing; antialias=False is ignored.", stacklevel=3)
    height, width = new_size((image.height, image.width), size, max_size)
    if (height, width) == (image.height, image.width):
        return image
    return image.resize((width, height), pil_number(mode_of("resize", interpolation)))


@resize.on(Mask)
@on_planes
def _resize_mask(
    mask: Any,
    size: Any,
    interpolation: Any = InterpolationMode.NEAREST,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    # Labels are never mixed, whatever the image's mode is.
    mode = mode_of("resize", interpolation)
    mode = mode if mode in _NEAREST else InterpolationMode.NEAREST
    return resize.kernels["tensor"](mask, size, mode, max_size)


@resize.on(BoundingBoxes)
def _resize_boxes(
    boxes: Any,
    size: Any,
    interpolation: Any = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Any:
    height, width = boxes.canvas_size
    new = new_size(boxes.canvas_size, size, max_size)
    ratio = F.tensor([new[1] / width, new[0] / height] * 2, dtype=dt.float32, device=boxes.device)
    scaled = (boxes.as_tensor() * ratio).to(boxes.dtype)
    return wrap(scaled, like=boxes, canvas_size=new)
