"""Colours: brightness, contrast, saturation, hue, grey. Knows images of 1 or 3 channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....core import dtype as dt
from ....ops.registry import F
from ....tensor import Tensor
from ...types import PILImage
from .conversion import max_value, pil_to_tensor, to_dtype, to_pil_image
from .kernels import PIL, functional


def check_channels(op: str, image: Tensor) -> int:
    """1 or 3, or an error."""
    channels = image.shape[-3]
    if channels not in (1, 3):
        raise TypeError(f"{op}: needs 1 or 3 channels, got {channels}.")
    return int(channels)


def check_factor(op: str, name: str, factor: float) -> None:
    """Raise for a negative factor."""
    if factor < 0:
        raise ValueError(f"{op}: {name} must not be negative, got {factor}.")


def bounded(values: Tensor, dtype: dt.dtype) -> Tensor:
    """Values of an image in its range and type; integers are cut off, not rounded, as in Pillow."""
    return values.clamp(0, max_value(dtype)).to(dtype)


def _grey(image: Tensor) -> Tensor:
    """The luma of (..., 3, H, W), ITU-R 601, with one channel and not yet cast back."""
    r, g, b = F.unbind(image if image.dtype.is_floating_point else image.float(), -3)
    # `alpha` rounds product and sum at once, as in torch: it decides which byte comes out.
    return F.add(F.add(r * 0.2989, g, alpha=0.587), b, alpha=0.114).unsqueeze(-3)


def _blended(image: Tensor, other: Tensor, ratio: float) -> Tensor:
    wide = image if image.dtype.is_floating_point else image.float()
    return bounded(F.add(wide * float(ratio), other, alpha=1.0 - float(ratio)), image.dtype)


def _check_outputs(num_output_channels: int) -> None:
    if num_output_channels not in (1, 3):
        raise ValueError(f"rgb_to_grayscale: num_output_channels must be 1 or 3, got {num_output_channels}.")


# --- grey and colour -----------------------------------------------------------------------------


@functional
def rgb_to_grayscale(inpt: Tensor, num_output_channels: int = 1) -> Tensor:
    """The luma of an image, in one channel or in three equal ones.

    >>> votive.vision.transforms.functional.rgb_to_grayscale(votive.ones(3, 1, 1))
    tensor([[[0.9999]]])
    """
    _check_outputs(num_output_channels)
    grey = inpt.clone() if check_channels("rgb_to_grayscale", inpt) == 1 else _grey(inpt).to(inpt.dtype)
    return grey if num_output_channels == 1 else F.cat((grey, grey, grey), -3)


@rgb_to_grayscale.on(PIL)
def _grayscale_pil(image: PILImage, num_output_channels: int = 1) -> PILImage:
    _check_outputs(num_output_channels)
    grey = image.convert("L")
    if num_output_channels == 1:
        return grey
    return to_pil_image(np.dstack([np.asarray(grey)] * 3))


@functional
def grayscale_to_rgb(inpt: Tensor) -> Tensor:
    """Three equal channels; what has three already stays as it is.

    >>> votive.vision.transforms.functional.grayscale_to_rgb(votive.ones(1, 2, 2)).shape
    votive.Size([3, 2, 2])
    """
    return inpt if inpt.shape[-3] >= 3 else F.cat((inpt, inpt, inpt), -3)


@grayscale_to_rgb.on(PIL)
def _rgb_pil(image: PILImage) -> PILImage:
    return image.convert("RGB")


@functional
def permute_channels(inpt: Tensor, permutation: Sequence[int]) -> Tensor:
    """Channel `permutation[i]` of the image becomes channel i.

    >>> image = votive.arange(3).reshape(3, 1, 1)
    >>> votive.vision.transforms.functional.permute_channels(image, [2, 1, 0]).flatten()
    tensor([2, 1, 0])
    """
    if sorted(permutation) != list(range(inpt.shape[-3])):
        raise ValueError(f"permute_channels: {list(permutation)} is not a permutation of {inpt.shape[-3]} channels.")
    at = F.tensor(list(permutation), dtype=dt.int64, device=inpt.device)
    return F.index_select(inpt, -3, at)


@permute_channels.on(PIL)
def _permute_pil(image: PILImage, permutation: Sequence[int]) -> PILImage:
    return to_pil_image(permute_channels(pil_to_tensor(image), permutation))


# --- adjusting -----------------------------------------------------------------------------------


@functional
def adjust_brightness(inpt: Tensor, brightness_factor: float) -> Tensor:
    """Every value times the factor; 0 is black, 1 the image itself.

    >>> votive.vision.transforms.functional.adjust_brightness(votive.ones(1, 1, 1), 0.5)
    tensor([[[0.5000]]])
    """
    check_factor("adjust_brightness", "brightness_factor", brightness_factor)
    check_channels("adjust_brightness", inpt)
    wide = inpt if inpt.dtype.is_floating_point else inpt.float()
    return bounded(wide * brightness_factor, inpt.dtype)


@functional
def adjust_contrast(inpt: Tensor, contrast_factor: float) -> Tensor:
    """Distances from the image's mean grey times the factor; 0 is all grey.

    >>> image = votive.tensor([[[0.2, 0.4]]])
    >>> votive.vision.transforms.functional.adjust_contrast(image, 2.0)
    tensor([[[0.1000, 0.5000]]])
    """
    check_factor("adjust_contrast", "contrast_factor", contrast_factor)
    whole = not inpt.dtype.is_floating_point
    if check_channels("adjust_contrast", inpt) == 3:
        grey = F.floor(_grey(inpt)) if whole else _grey(inpt)
    else:
        grey = inpt.float() if whole else inpt
    return _blended(inpt, F.mean(grey, (-3, -2, -1), keepdim=True), contrast_factor)


@functional
def adjust_saturation(inpt: Tensor, saturation_factor: float) -> Tensor:
    """Distances from each pixel's own grey times the factor; 0 is a grey image.

    >>> image = votive.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    >>> votive.vision.transforms.functional.adjust_saturation(image, 0.0).flatten()
    tensor([0.2989, 0.2989, 0.2989])
    """
    check_factor("adjust_saturation", "saturation_factor", saturation_factor)
    if check_channels("adjust_saturation", inpt) == 1:
        return inpt
    grey = _grey(inpt)
    return _blended(inpt, grey if inpt.dtype.is_floating_point else F.floor(grey), saturation_factor)


def _to_hsv(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value of (..., 3, H, W), each in 0..1."""
    r, g, b = F.unbind(image, -3)
    low, high = F.amin(image, -3), F.amax(image, -3)
    spread = high - low
    flat = spread == 0
    safe = F.where(flat, 1.0, spread)
    far_r, far_g, far_b = ((high - c) / safe for c in (r, g, b))
    # Which sixth of the circle a colour lies in is said by its largest channel.
    sixth = F.where(high == r, far_b - far_g, F.where(high == g, 2.0 + far_r - far_b, 4.0 + far_g - far_r))
    hue = F.fmod(sixth / 6.0 + 1.0, 1.0)
    return hue, spread / F.where(flat, 1.0, high), high


def _from_hsv(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    sixth = F.floor(hue * 6.0)
    part = hue * 6.0 - sixth
    p = (value * (1.0 - saturation)).clamp(0, 1)
    q = (value * (1.0 - saturation * part)).clamp(0, 1)
    t = (value * (1.0 - saturation * (1.0 - part))).clamp(0, 1)
    which = F.remainder(sixth.long(), 6)
    corners = ((value, t, p), (q, value, p), (p, value, t), (p, q, value), (t, p, value), (value, p, q))
    out = []
    for channel in range(3):
        picked = corners[5][channel]
        for k in range(5):
            picked = F.where(which == k, corners[k][channel], picked)
        out.append(picked)
    return F.stack(out, -3)


@functional
def adjust_hue(inpt: Tensor, hue_factor: float) -> Tensor:
    """Hues rotated by a fraction of the circle, -0.5 to 0.5.

    >>> red = votive.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    >>> votive.vision.transforms.functional.adjust_hue(red, 0.5).flatten()
    tensor([0., 1., 1.])
    """
    _check_hue(hue_factor)
    if check_channels("adjust_hue", inpt) == 1 or inpt.numel() == 0:
        return inpt
    kind = inpt.dtype
    image = to_dtype(inpt, kind if kind is dt.float64 else dt.float32, scale=True)
    hue, saturation, value = _to_hsv(image)
    hue = F.remainder(hue + hue_factor, 1.0)
    return to_dtype(_from_hsv(hue, saturation, value), kind, scale=True)


def _check_hue(hue_factor: float) -> None:
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor must be in [-0.5, 0.5], got {hue_factor}.")


def enhanced(name: str, factor_name: str) -> Callable[..., PILImage]:
    """The kernel for PIL images that Pillow's ImageEnhance has under this name."""

    def pil(image: PILImage, *args: float, **options: float) -> PILImage:
        from PIL import ImageEnhance

        (factor,) = args or options.values()
        check_factor(f"adjust_{factor_name.removesuffix('_factor')}", factor_name, factor)
        return getattr(ImageEnhance, name)(image).enhance(factor)

    return pil


adjust_brightness.on(PIL)(enhanced("Brightness", "brightness_factor"))
adjust_contrast.on(PIL)(enhanced("Contrast", "contrast_factor"))
adjust_saturation.on(PIL)(enhanced("Color", "saturation_factor"))


@adjust_hue.on(PIL)
def _hue_pil(image: PILImage, hue_factor: float) -> PILImage:
    from PIL import Image as Pillow

    _check_hue(hue_factor)
    if image.mode in ("L", "1", "I", "F"):
        return image
    hue, saturation, value = image.convert("HSV").split()
    # Bytes wrap around, as hues do.
    rotated = (np.array(hue, np.int32) + int(hue_factor * 255)) % 256
    hue = Pillow.fromarray(rotated.astype(np.uint8))
    return Pillow.merge("HSV", (hue, saturation, value)).convert(image.mode)
