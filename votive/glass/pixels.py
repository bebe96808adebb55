"""Pictures of pixels: what a model was given to see, maps of numbers, and both over each other.

Knows arrays; knows no model.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tensor import Tensor
from ..train.png import encode, rgb
from .canvas import LETTER, Canvas
from .heatmap import RISING, SIGNED, colour_of
from .plots import Figure

# A picture is drawn at least so large, in whole pixels; of larger ones, every n-th is shown.
LEAST, MOST = 224, 672


@dataclass(frozen=True, eq=False)
class Pixels(Figure):
    """A picture (height, width, 3) of bytes.

    >>> from votive.glass.pixels import Pixels
    >>> picture = Pixels(np.zeros((2, 3, 3), np.uint8), title="night")
    >>> picture.svg().count("<image"), picture.to_dict()["width"]
    (1, 3)
    """

    colours: Any
    title: str = ""
    note: str = ""
    legend: str = ""

    def __post_init__(self) -> None:
        x = np.asarray(self.colours)
        if x.ndim != 3 or x.shape[2] != 3 or x.dtype != np.uint8 or 0 in x.shape:
            raise ValueError(f"Pixels: takes an array (height, width, 3) of bytes, got {x.shape} of {x.dtype}.")

    def small(self) -> np.ndarray:
        """The pixels, fewer where they are many."""
        x = np.asarray(self.colours)
        step = math.ceil(max(x.shape[:2]) / MOST)
        return x[::step, ::step]

    def to_dict(self) -> dict[str, Any]:
        """The pixels as a PNG file in base64, and what is said of them."""
        x = self.small()
        return {
            "png": base64.b64encode(encode(np.ascontiguousarray(x))).decode(),
            "height": x.shape[0],
            "width": x.shape[1],
            "title": self.title,
            "note": self.note,
            "legend": self.legend,
        }

    def canvas(self) -> Canvas:
        x = self.small()
        height, width = x.shape[:2]
        scale = max(1, LEAST // max(height, width))
        room = max(LETTER * len(t) + 16 for t in (self.title, self.note, self.legend))
        canvas = Canvas(max(width * scale + 16, room), height * scale + (60 if self.note else 44))
        canvas.text(8, 14, self.title)
        canvas.image(8, 26, width * scale, height * scale, x)
        canvas.text(8, height * scale + 36, self.legend)
        canvas.text(8, height * scale + 52, self.note)
        return canvas


def scale_of(signed: bool = False) -> np.ndarray:
    """256 colours (256, 3) from the least to the most."""
    scale = SIGNED if signed else RISING
    return np.array([rgb(colour_of(i / 255, scale)) for i in range(256)], np.uint8)


def coloured(values: np.ndarray, low: float = 0.0, high: float = 1.0, signed: bool = False) -> np.ndarray:
    """Numbers (height, width) as colours (height, width, 3); NaN is grey.

    >>> from votive.glass.pixels import coloured
    >>> coloured(np.array([[0.0, 1.0]])).tolist()
    [[[68, 1, 84], [253, 231, 37]]]
    """
    x = np.asarray(values, np.float64)
    known = np.isfinite(x)
    share = (np.where(known, x, low) - low) / ((high - low) or 1.0)
    at = np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)
    return np.where(known[..., None], scale_of(signed)[at], np.uint8(154))


def as_picture(x: Tensor) -> np.ndarray:
    """What a model was given, (channels, height, width), as bytes from its least to its most.

    >>> from votive.glass.pixels import as_picture
    >>> as_picture(votive.tensor([[[0.0, 2.0]]])).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    pixels = np.asarray(x.detach().float().cpu().numpy(), np.float64)
    if pixels.shape[0] != 3:
        pixels = np.repeat(pixels.mean(0, keepdims=True), 3, 0)
    low, high = pixels.min(), pixels.max()
    share = (pixels - low) / ((high - low) or 1.0)
    return np.ascontiguousarray(np.moveaxis(np.rint(share * 255).astype(np.uint8), 0, -1))


def over(picture: np.ndarray, heat: np.ndarray, strength: float = 0.7) -> np.ndarray:
    """A picture (height, width, 3) with colours where a map (height, width) from 0 to 1 is high.

    >>> from votive.glass.pixels import over
    >>> over(np.full((1, 2, 3), 9, np.uint8), np.array([[0.0, 1.0]]))[0, 0].tolist()
    [9, 9, 9]
    """
    heat = np.clip(np.asarray(heat, np.float64), 0, 1)
    share = (strength * heat)[..., None]
    mixed = (1 - share) * picture + share * coloured(heat)
    return np.rint(mixed).astype(np.uint8)


def grown(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """A map in a larger size, each number a block of pixels.

    >>> from votive.glass.pixels import grown
    >>> grown(np.array([[1, 2]]), 2, 4).tolist()
    [[1, 1, 2, 2], [1, 1, 2, 2]]
    """
    x = np.asarray(values)
    rows = np.arange(height) * x.shape[0] // height
    columns = np.arange(width) * x.shape[1] // width
    return x[rows][:, columns]


def tiled(maps: np.ndarray, across: int | None = None, gap: int = 1) -> np.ndarray:
    """Maps (count, height, width) beside each other with gaps that are no numbers.

    >>> from votive.glass.pixels import tiled
    >>> tiled(np.ones((3, 2, 2))).shape
    (5, 5)
    """
    x = np.asarray(maps, np.float64)
    count, height, width = x.shape
    across = math.ceil(math.sqrt(count)) if across is None else across
    down = math.ceil(count / across)
    ground = np.full((down * (height + gap) - gap, across * (width + gap) - gap), np.nan)
    for i in range(count):
        top, left = i // across * (height + gap), i % across * (width + gap)
        ground[top : top + height, left : left + width] = x[i]
    return ground
