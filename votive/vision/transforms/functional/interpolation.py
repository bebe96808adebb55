"""The ways to read an image between its pixels, by torchvision's names and Pillow's numbers."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ...io.raw import pillow


class InterpolationMode(Enum):
    """How values between pixels are found; BOX and HAMMING are for PIL images only.

    >>> votive.vision.transforms.InterpolationMode.BILINEAR.value
    'bilinear'
    """

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# A mode, its name, or Pillow's number.
Interpolation = InterpolationMode | str | int
_BY_NUMBER = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_NUMBERS = {**{name: number for number, name in _BY_NUMBER.items()}, "nearest-exact": 0}


def mode_of(op: str, interpolation: Interpolation) -> InterpolationMode:
    """The mode that a mode, its name or Pillow's number means."""
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if isinstance(interpolation, int) and interpolation in _BY_NUMBER:
        interpolation = _BY_NUMBER[interpolation]
    try:
        return InterpolationMode(interpolation)
    except ValueError:
        names = [m.value for m in InterpolationMode]
        raise ValueError(f"{op}: interpolation must be one of {names}, got {interpolation!r}.") from None


def pil_mode(mode: InterpolationMode) -> Any:
    """What Pillow calls this mode."""
    return pillow().Resampling(_NUMBERS[mode.value])
