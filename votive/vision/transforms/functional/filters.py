"""Normalisation, blur, sharpness, noise, erasing, JPEG's losses, and frames of videos."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....core import dtype as dt
from ....nn import functional as NF
from ....ops.registry import F
from ....surface.interchange import as_tensor
from ....tensor import Tensor
from ...types import PILImage, Size
from .color import bounded, check_channels, check_factor, enhanced
from .conversion import pil_to_tensor, to_pil_image
from .kernels import PIL, functional


@functional
def normalize(
    inpt: Tensor, mean: Sequence[float] | Tensor, std: Sequence[float] | Tensor, inplace: bool = False
) -> Tensor:
    """`(image - mean) / std`, one of each per channel or one for all.

    >>> votive.vision.transforms.functional.normalize(votive.ones(1, 1, 1), [0.5], [0.25])
    tensor([[[2.]]])
    """
    op = "normalize"
    if not inpt.dtype.is_floating_point:
        raise TypeError(f"{op}: needs floats, got {inpt.dtype}; use to_dtype(scale=True) first.")
    if inpt.ndim < 3:
        raise ValueError(f"{op}: needs an image (..., C, H, W), got shape {tuple(inpt.shape)}.")
    centre, spread = (as_tensor(v, dtype=inpt.dtype, device=inpt.device) for v in (mean, std))
    if bool((spread == 0).any().item()):
        raise ValueError(f"{op}: std must not contain 0 in {inpt.dtype}, got {spread.tolist()}.")
    centre, spread = (v.reshape(-1, 1, 1) if v.ndim == 1 else v for v in (centre, spread))
    if inplace:
        return inpt.sub_(centre).div_(spread)
    return (inpt - centre) / spread


# --- blur ----------------------------------------------------------------------------------------


def _bell(size: int, sigma: float, like: Tensor) -> Tensor:
    """A Gaussian at `size` places one apart, with sum 1."""
    reach = (size - 1) / (2.0 * math.sqrt(2.0))
    line = F.linspace(-reach, reach, size, dtype=like.dtype, device=like.device)
    return F.softmax(-((line / sigma) ** 2), 0)


def _two(op: str, name: str, value: object) -> list[Any]:
    if isinstance(value, (int, float)):
        return [value, value]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{op}: {name} must be a number or a sequence, got {value!r}.")
    if len(value) not in (1, 2):
        raise ValueError(f"{op}: {name} must have one or two elements, got {value}.")
    return [value[0], value[-1]]


@functional
def gaussian_blur(inpt: Tensor, kernel_size: Size, sigma: float | Sequence[float] | None = None) -> Tensor:
    """Each pixel the mean of its neighbours, weighted by a Gaussian; borders are reflected.

    `kernel_size` and `sigma`: one number, or (x, y). Sigma defaults to 0.15 size + 0.35.

    >>> image = votive.zeros(1, 3, 3)
    >>> image[0, 1, 1] = 1
    >>> votive.vision.transforms.functional.gaussian_blur(image, 3, 0.5)[0, 1]
    tensor([0.1676, 0.6193, 0.1676])
    """
    op = "gaussian_blur"
    sizes = _two(op, "kernel_size", kernel_size)
    if any(size % 2 == 0 or size < 0 for size in sizes):
        raise ValueError(f"{op}: kernel_size must be odd and positive, got {kernel_size}.")
    sigmas = [s * 0.15 + 0.35 for s in sizes] if sigma is None else _two(op, "sigma", sigma)
    if min(sigmas) <= 0:
        raise ValueError(f"{op}: sigma must be positive, got {sigma}.")
    if inpt.numel() == 0:
        return inpt
    shape, kind = tuple(inpt.shape), inpt.dtype
    wide = inpt if kind.is_floating_point else inpt.float()
    image = wide.reshape(-1, *shape[-3:])
    (across, down), half = sizes, [s // 2 for s in sizes]
    weight = _bell(down, sigmas[1], wide).unsqueeze(1) * _bell(across, sigmas[0], wide)
    image = NF.pad(image, [half[0], half[0], half[1], half[1]], mode="reflect")
    channels = shape[-3]
    out = NF.conv2d(image, weight.expand(channels, 1, down, across), groups=channels)
    out = out.reshape(shape)
    return out if kind.is_floating_point else F.round(out).to(kind)


@gaussian_blur.on(PIL)
def _blur_pil(image: PILImage, kernel_size: Size, sigma: float | Sequence[float] | None = None) -> PILImage:
    return to_pil_image(gaussian_blur(pil_to_tensor(image), kernel_size, sigma), mode=image.mode)


@functional
def adjust_sharpness(inpt: Tensor, sharpness_factor: float) -> Tensor:
    """Distances from a smoothed image times the factor; 0 is the smoothed image. Edges stay.

    >>> image = votive.zeros(1, 3, 3)
    >>> image[0, 1, 1] = 1
    >>> votive.vision.transforms.functional.adjust_sharpness(image, 0.0)[0, 1, 1]
    tensor(0.3846)
    """
    op = "adjust_sharpness"
    channels = check_channels(op, inpt)
    check_factor(op, "sharpness_factor", sharpness_factor)
    shape, kind = tuple(inpt.shape), inpt.dtype
    if inpt.numel() == 0 or min(shape[-2:]) <= 2:
        return inpt
    wide = inpt if kind.is_floating_point else inpt.float()
    image = wide.reshape(-1, *shape[-3:])
    # Pillow's SMOOTH filter.
    weight = F.tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=wide.dtype, device=inpt.device) / 13
    smooth = NF.conv2d(image, weight.expand(channels, 1, 3, 3), groups=channels)
    smooth = smooth if kind.is_floating_point else F.round(smooth)
    change = NF.pad(smooth - image[..., 1:-1, 1:-1], [1, 1, 1, 1])
    out = F.add(image, change, alpha=1.0 - sharpness_factor)
    return bounded(out.reshape(shape), kind)


adjust_sharpness.on(PIL)(enhanced("Sharpness", "sharpness_factor"))


# --- noise and loss ------------------------------------------------------------------------------


@functional
def gaussian_noise(inpt: Tensor, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> Tensor:
    """Normal noise added to floats in 0..1 or to bytes; `clip` cuts what leaves the range.

    >>> votive.vision.transforms.functional.gaussian_noise(votive.zeros(1, 1, 1), 0.5, 0.0)
    tensor([[[0.5000]]])
    """
    op = "gaussian_noise"
    check_factor(op, "sigma", sigma)
    if inpt.dtype.is_floating_point:
        out = inpt + (mean + F.randn_like(inpt) * sigma)
        return out.clamp(0, 1) if clip else out
    if inpt.dtype is not dt.uint8:
        raise ValueError(f"{op}: takes floats or uint8, got {inpt.dtype}.")
    noise = mean * 255 + F.randn_like(inpt, dtype=dt.float32) * (sigma * 255)
    out = inpt.to(dt.int16) + noise.to(dt.int16)
    return (out.clamp(0, 255) if clip else out).to(dt.uint8)


@functional
def erase(inpt: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """The part of `h` x `w` from row i, column j on replaced by `v`.

    >>> image = votive.ones(1, 2, 3)
    >>> votive.vision.transforms.functional.erase(image, 0, 1, 2, 1, votive.tensor(0.0))
    tensor([[[1., 0., 1.],
             [1., 0., 1.]]])
    """
    out = inpt if inplace else inpt.clone()
    out[..., i : i + h, j : j + w] = v
    return out


@erase.on(PIL)
def _erase_pil(image: PILImage, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> PILImage:
    return to_pil_image(erase(pil_to_tensor(image), i, j, h, w, v), mode=image.mode)


@functional
def jpeg(image: Tensor, quality: int) -> Tensor:
    """Bytes written as JPEG of this quality and read again.

    >>> image = votive.zeros(3, 8, 8, dtype=votive.uint8)
    >>> votive.vision.transforms.functional.jpeg(image, 50).shape
    votive.Size([3, 8, 8])
    """
    from ...io import decode_jpeg, encode_jpeg

    shape = tuple(image.shape)
    if not image.numel():
        return image.clone()
    done = [decode_jpeg(encode_jpeg(one, quality=quality)) for one in image.reshape(-1, *shape[-3:])]
    return F.stack(done).reshape(shape)


@jpeg.on(PIL)
def _jpeg_pil(image: PILImage, quality: int) -> PILImage:
    import io

    from PIL import Image as Pillow

    written = io.BytesIO()
    image.save(written, format="JPEG", quality=quality)
    read = Pillow.open(io.BytesIO(written.getvalue()))
    read.load()
    return read


@functional
def uniform_temporal_subsample(inpt: Tensor, num_samples: int) -> Tensor:
    """`num_samples` frames of (..., T, C, H, W), evenly spaced, the first and last among them.

    >>> video = votive.arange(8).reshape(8, 1, 1, 1)
    >>> votive.vision.transforms.functional.uniform_temporal_subsample(video, 3).flatten()
    tensor([0, 3, 7])
    """
    frames = inpt.shape[-4]
    at = F.linspace(0, frames - 1, num_samples, device=inpt.device).long()
    return F.index_select(inpt, -4, at)
