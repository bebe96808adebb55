"""Pictures to tensors in -1 .. 1 that an autoencoder reads, and back to what users look at. Knows no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import votive

from ...nn import functional as F
from ...tensor import Tensor

OUTPUTS = ("pil", "np", "pt", "latent")


def check_output_type(name: str, output_type: str) -> None:
    """Raise for a form of pictures that nobody knows."""
    if output_type not in OUTPUTS:
        known = ", ".join(map(repr, OUTPUTS))
        raise ValueError(f"{name}: output_type={output_type!r} is not known; it may be {known}.")


def shown(pictures: Tensor, output_type: str, ready: Sequence[bool] | None = None) -> Any:
    """Pictures (batch, channels, height, width) in -1 .. 1 as a list of PIL's, an array or a tensor in 0 .. 1.

    `ready` says of each whether it lies in 0 .. 1 already.

    >>> from votive.models.diffusion.pictures import shown
    >>> shown(votive.zeros(1, 3, 2, 2), "np").shape
    (1, 2, 2, 3)
    """
    check_output_type("shown", output_type)
    if output_type == "latent":
        return pictures
    unit = (pictures * 0.5 + 0.5).clamp(0, 1)
    if ready is not None:
        unit = votive.stack([p if done else u for p, u, done in zip(pictures, unit, ready, strict=True)])
    if output_type == "pt":
        return unit
    array = unit.detach().cpu().permute(0, 2, 3, 1).float().numpy()
    return as_pil(array) if output_type == "pil" else array


def as_pil(array: Any) -> list[Any]:
    """An array (batch, height, width, channels) in 0 .. 1 as PIL's pictures."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "output_type='pil' needs pillow: pip install 'votive[vision]', or ask for output_type='np' or 'pt'."
        ) from None
    whole = (array * 255).round().astype(np.uint8)
    return [Image.fromarray(a.squeeze(-1), mode="L") if a.shape[-1] == 1 else Image.fromarray(a) for a in whole]


def read(image: Any, factor: int, channels: int, height: int | None = None, width: int | None = None) -> Tensor:
    """Pictures as an autoencoder reads them: (batch, 3, height, width) in -1 .. 1, sides that `factor` divides.

    Takes a picture of PIL's, an array (height, width, 3) or a tensor (3, height, width) in 0 .. 1, batches and lists
    of these. A tensor with `channels` channels is taken for latents and given back.

    >>> from votive.models.diffusion.pictures import read
    >>> read(votive.ones(3, 17, 16), 8, 4).shape
    votive.Size([1, 3, 16, 16])
    """
    images = list(image) if isinstance(image, list | tuple) else [image]
    if not images:
        raise ValueError("image: an empty list came; give at least one picture.")
    if all(isinstance(i, Tensor) for i in images):
        found = votive.cat([i if i.dim() == 4 else i.unsqueeze(0) for i in images])
        if found.shape[1] == channels:
            return found
    elif all(isinstance(i, np.ndarray) for i in images):
        arrays = [np.asarray(i if i.ndim == 4 else i[None], np.float32) for i in images]
        found = votive.from_numpy(np.ascontiguousarray(np.concatenate(arrays).transpose(0, 3, 1, 2)))
    elif all(hasattr(i, "resize") and hasattr(i, "convert") for i in images):
        return 2.0 * _from_pil(images, factor, height, width) - 1.0
    else:
        kinds = ", ".join(sorted({type(i).__name__ for i in images}))
        raise ValueError(
            f"image: pictures of PIL's, arrays (height, width, 3) or tensors (3, height, width) in 0 .. 1 are taken, "
            f"all of one kind; got {kinds}."
        )
    h, w = _sides(found.shape[2], found.shape[3], factor, height, width)
    if (h, w) != (found.shape[2], found.shape[3]):
        found = F.interpolate(found, size=(h, w))
    if found.numel() and float(found.min()) < 0:
        raise ValueError("image: numbers of pictures lie in 0 .. 1; these go below 0. Shift -1 .. 1 by x / 2 + 0.5.")
    return 2.0 * found - 1.0


def read_mask(mask: Any, height: int, width: int) -> Tensor:
    """Masks (batch, 1, height, width) of ones and zeros: a picture of PIL's, an array (height, width) or (height,
    width, 1), a tensor (height, width) or (1, height, width) in 0 .. 1, batches and lists of these; white is 1.

    >>> from votive.models.diffusion.pictures import read_mask
    >>> read_mask(np.array([[0.2, 0.7]]), 1, 4)
    tensor([[[[0., 0., 1., 1.]]]])
    """
    masks = list(mask) if isinstance(mask, list | tuple) else [mask]
    if not masks:
        raise ValueError("mask_image: an empty list came; give at least one mask.")
    if all(hasattr(m, "resize") and hasattr(m, "convert") for m in masks):
        from PIL import Image

        sized = [m.resize((width, height), resample=Image.Resampling.LANCZOS).convert("L") for m in masks]
        found = votive.from_numpy(np.stack([np.asarray(m, np.float32) / np.float32(255) for m in sized])[:, None])
    else:
        found = votive.cat([_mask_of(m) for m in masks])
        if tuple(found.shape[2:]) != (height, width):
            found = F.interpolate(found, size=(height, width))
    return (found >= 0.5).float()


def _mask_of(mask: Any) -> Tensor:
    """One mask, or a batch of them, as (batch, 1, height, width)."""
    if isinstance(mask, np.ndarray):
        x = mask[..., 0] if mask.ndim >= 3 and mask.shape[-1] == 1 else mask
        mask = votive.from_numpy(np.ascontiguousarray(x, np.float32))
    if not isinstance(mask, Tensor):
        raise ValueError(
            f"mask_image: give a picture of PIL's, an array or a tensor, all of one kind; got {type(mask).__name__}."
        )
    found = mask.float()
    found = found.unsqueeze(0) if found.dim() == 2 else found
    found = found.unsqueeze(1) if found.dim() == 3 else found
    if found.dim() != 4 or found.shape[1] != 1:
        raise ValueError(f"mask_image: a mask has one channel; got the shape {tuple(mask.shape)}.")
    return found


def _sides(own_height: int, own_width: int, factor: int, height: int | None, width: int | None) -> tuple[int, int]:
    h, w = height or own_height, width or own_width
    return h - h % factor, w - w % factor


def _from_pil(images: list[Any], factor: int, height: int | None, width: int | None) -> Tensor:
    from PIL import Image

    h, w = _sides(images[0].height, images[0].width, factor, height, width)
    arrays = [
        np.asarray(i.resize((w, h), resample=Image.Resampling.LANCZOS).convert("RGB"), np.float32) for i in images
    ]
    return votive.from_numpy(np.ascontiguousarray(np.stack(arrays).transpose(0, 3, 1, 2)) / np.float32(255))
