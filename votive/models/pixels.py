"""Pictures as arrays: from files, in other sizes, cropped. Knows pillow and NumPy, no processor."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from .config import StrPath
from .resampling import over_white, resampled

if TYPE_CHECKING:
    from PIL import Image


def size_of(size: object, square: bool) -> dict[str, int]:
    """A size as a dict, from a number, a pair or a dict.

    >>> from votive.models.pixels import size_of
    >>> size_of(8, square=True), size_of([4, 6], square=True), size_of(8, square=False)
    ({'height': 8, 'width': 8}, {'height': 4, 'width': 6}, {'shortest_edge': 8})
    """
    if isinstance(size, int):
        return {"height": size, "width": size} if square else {"shortest_edge": size}
    if isinstance(size, (list, tuple)) and len(size) == 2:
        return {"height": int(size[0]), "width": int(size[1])}
    kinds = (
        {"height", "width"},
        {"shortest_edge"},
        {"shortest_edge", "longest_edge"},
        {"longest_edge"},
        {"max_height", "max_width"},
    )
    if isinstance(size, dict) and {k for k, v in size.items() if v is not None} in kinds:
        return {k: int(v) for k, v in size.items() if v is not None}
    raise ValueError(
        "size must be a number, a pair, or a dict with height and width, shortest_edge and/or "
        f"longest_edge, or max_height and max_width; got {size!r}."
    )


def target_size(now: tuple[int, ...], size: dict[str, int]) -> tuple[int, int]:
    """Height and width that a picture is to have.

    >>> from votive.models.pixels import target_size
    >>> target_size((300, 200), {"shortest_edge": 100})
    (150, 100)
    """
    height, width = now
    if "height" in size:
        return size["height"], size["width"]
    if "max_height" in size:
        scale = min(size["max_height"] / height, size["max_width"] / width)
        return int(height * scale), int(width * scale)
    short, long = min(height, width), max(height, width)
    if "shortest_edge" not in size:  # so that the longer side fits
        edge = size["longest_edge"]
        other = int(edge * short / long)
        return (other, edge) if height < width else (edge, other)
    edge, most = size["shortest_edge"], size.get("longest_edge")
    exact = float(edge)
    if most is not None and long / short * edge > most:
        exact = most * short / long
        edge = round(exact)
        if short == edge:
            return height, width
    other = int(exact * long / short)
    return (edge, other) if height <= width else (other, edge)


def pictures_of(images: Any) -> list[Any]:
    """A list of pictures, from one or many."""
    if isinstance(images, (list, tuple)):
        return list(images)
    if getattr(images, "ndim", 0) == 4:
        return [images[i] for i in range(images.shape[0])]
    return [images]


def opened(path: StrPath) -> Any:
    """A picture from a file, turned as the camera says; clear errors for what is none.

    >>> from votive.models.pixels import opened
    >>> opened("no such file.png")
    Traceback (most recent call last):
    FileNotFoundError: no such file.png does not exist.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"{path} does not exist.")
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise ImportError("reading pictures from files needs pillow: pip install pillow, or pass an array.") from None
    try:
        with Image.open(path) as file:
            return ImageOps.exif_transpose(file)
    except Exception as e:  # decoders let out whatever a damaged file makes them trip over
        raise ValueError(f"{path} is no picture that pillow can read ({e}).") from None


def channels_first(picture: Any, rgb: bool | None) -> np.ndarray:
    """The pixels (channels, height, width) of a path, a pillow image, an array or a tensor."""
    if isinstance(picture, (str, os.PathLike)):
        picture, rgb = opened(picture), True  # a file has a mode, a model does not
    if hasattr(picture, "getbands"):
        picture = _in_colour(picture) if rgb else picture
        x = np.array(picture)
        return x[None] if x.ndim == 2 else np.moveaxis(x, -1, 0)
    if isinstance(picture, votive.Tensor):
        picture = picture.detach().cpu().numpy()
    if not isinstance(picture, np.ndarray):
        raise TypeError(
            f"a picture must be a path, a pillow image, or an array or tensor, got {type(picture).__name__}."
        )
    x = picture[None] if picture.ndim == 2 else picture
    if x.ndim != 3 or not ({1, 3, 4} & {x.shape[0], x.shape[-1]}):
        raise ValueError(
            "a picture must be (height, width), (channels, height, width) or (height, width, "
            f"channels) with 1, 3 or 4 channels, got {picture.shape}."
        )
    x = x if x.shape[0] in (1, 3, 4) else np.moveaxis(x, -1, 0)
    if rgb and x.shape[0] == 1:
        x = np.repeat(x, 3, 0)
    elif rgb and x.shape[0] == 4:
        x = over_white(_bytes(x)[0])
    return x


def _in_colour(picture: Image.Image) -> Image.Image:
    """A pillow image in RGB; what shines through is white."""
    if "A" in picture.getbands() or picture.info.get("transparency") is not None:
        from PIL import Image

        picture = picture.convert("RGBA")
        ground = Image.new("RGBA", picture.size, (255, 255, 255, 255))
        picture = Image.alpha_composite(ground, picture)
    return picture.convert("RGB")


def _bytes(x: np.ndarray) -> tuple[np.ndarray, bool]:
    """Pixels (channels, height, width) as bytes, and whether they were between 0 and 1."""
    if x.dtype == np.uint8:
        scaled = False
    elif x.dtype.kind in "iu" or np.allclose(x, x.astype(np.int64)):
        if x.min() < 0 or x.max() > 255:
            raise ValueError(f"pictures must have pixels from 0 to 255, or from 0 to 1, got {x.min()} to {x.max()}.")
        scaled = False
    elif x.min() >= 0 and x.max() <= 1:
        x, scaled = (x.astype(np.float64) * 255).astype(x.dtype), True
    else:
        raise ValueError(f"pictures must have pixels from 0 to 255, or from 0 to 1, got {x.min()} to {x.max()}.")
    return np.ascontiguousarray(x.astype(np.uint8)), scaled


def resized(x: np.ndarray, size: tuple[int, int], resample: int | None) -> np.ndarray:
    """A picture (channels, height, width) in another size, filtered as pillow does on 8 bits."""
    y, scaled = _bytes(x)
    y = resampled(y, size, 2 if resample is None else int(resample))
    return (y.astype(np.float64) * (1 / 255)).astype(np.float32) if scaled else y


def center_cropped(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The middle of a picture (channels, height, width), with zeros around where it is small."""
    (height, width), (high, wide) = x.shape[1:], size
    if height < high or width < wide:
        tall, broad = max(height, high), max(width, wide)
        ground = np.zeros((x.shape[0], tall, broad), x.dtype)
        up, left = math.ceil((tall - height) / 2), math.ceil((broad - width) / 2)
        ground[:, up : up + height, left : left + width] = x
        # The window is counted from where the picture would be, not from the ground.
        top, side = (height - high) // 2 + up, (width - wide) // 2 + left
        return ground[:, max(0, top) : top + high, max(0, side) : side + wide]
    top, left = (height - high) // 2, (width - wide) // 2
    return x[:, top : top + high, left : left + wide]


def per_channel(value: Any, x: np.ndarray, name: str) -> np.ndarray:
    """A number for each channel, from one or a list."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * x.shape[0]
    if len(values) != x.shape[0]:
        raise ValueError(
            f"{name} has {len(values)} numbers and the picture {x.shape[0]} channels; pass "
            "do_convert_rgb=True for pictures that are not in colour."
        )
    return np.array(values, x.dtype)[:, None, None]
