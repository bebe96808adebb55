"""Images, masks and boxes in another size."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from ....core import dtype as dt
from ....nn import functional as NF
from ....ops.registry import F
from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, KeyPoints, Mask, wrap
from ...types import PILImage, Size
from .interpolation import Interpolation, InterpolationMode, mode_of, pil_mode
from .kernels import PIL, TENSOR, functional, on_planes

_SMOOTH = (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC, InterpolationMode.LANCZOS)
_NEAREST = (InterpolationMode.NEAREST, InterpolationMode.NEAREST_EXACT)


def _new_size(old: Sequence[int], size: Size | None, max_size: int | None = None) -> tuple[int, int]:
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


def _interpolated(image: Tensor, size: tuple[int, int], mode: InterpolationMode, smooth: bool) -> Tensor:
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
    inpt: Tensor,
    size: Size | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
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
    new = _new_size(shape[-2:], size, max_size)
    if new == shape[-2:]:
        return inpt
    if 0 in shape:
        return inpt.reshape(*shape[:-2], *new)
    smooth = bool(antialias) and mode in _SMOOTH
    return _interpolated(inpt.reshape(-1, *shape[-3:]), new, mode, smooth).reshape(*shape[:-2], *new)


@resize.on(PIL)
def _resize_pil(
    image: PILImage,
    size: Size | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> PILImage:
    if antialias is False:
        warnings.warn("resize: Pillow always uses antialiasing; antialias=False is ignored.", stacklevel=3)
    height, width = _new_size((image.height, image.width), size, max_size)
    if (height, width) == (image.height, image.width):
        return image
    return image.resize((width, height), pil_mode(mode_of("resize", interpolation)))


@resize.on(Mask)
@on_planes
def _resize_mask(
    mask: Tensor,
    size: Size | None,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    # Labels are never mixed, whatever the image's mode is.
    mode = mode_of("resize", interpolation)
    mode = mode if mode in _NEAREST else InterpolationMode.NEAREST
    return resize.kernels[TENSOR](mask, size, mode, max_size)


@resize.on(BoundingBoxes, KeyPoints)
def _resize_placed(
    inpt: BoundingBoxes | KeyPoints,
    size: Size | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    height, width = inpt.canvas_size
    new = _new_size(inpt.canvas_size, size, max_size)
    ratio = [new[1] / width, new[0] / height] * (inpt.shape[-1] // 2)
    scaled = inpt.as_tensor() * F.tensor(ratio, dtype=dt.float32, device=inpt.device)
    return wrap(scaled.to(inpt.dtype), like=inpt, canvas_size=new)
