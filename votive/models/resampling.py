"""Pictures of 8 bits in another size or without their alpha channel, bit by bit as in pillow.

Models were trained on pillow's rounding. It is written here in NumPy, so that arrays and tensors
can be prepared where pillow is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

# Weights are integers of this many bits after the point: 32, less 8 of a pixel and 2 to be safe.
_BITS = 32 - 8 - 2


def _sinc(x: np.ndarray) -> np.ndarray:
    turned = np.where(x == 0, 1.0, x * math.pi)
    return np.where(x == 0, 1.0, np.sin(turned) / turned)


def _box(x: np.ndarray) -> np.ndarray:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0.0)


def _hamming(x: np.ndarray) -> np.ndarray:
    # Pillow has these two numbers in single precision.
    a, b = float(np.float32(0.54)), float(np.float32(0.46))
    return np.where(np.abs(x) >= 1, 0.0, _sinc(x) * (a + b * np.cos(math.pi * x)))


def _cubic(x: np.ndarray) -> np.ndarray:
    """Keys' convolution with a = -0.5."""
    a, x = -0.5, np.abs(x)
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), 0.0)


# By pillow's numbers, with how far each filter reaches; 0 is the nearest pixel.
_FILTERS: dict[int, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    1: (_lanczos, 3.0),
    2: (_triangle, 1.0),
    3: (_cubic, 2.0),
    4: (_box, 0.5),
    5: (_hamming, 1.0),
}


def _taps(size: int, wanted: int, resample: int) -> tuple[np.ndarray, np.ndarray]:
    """For each new pixel the old ones it is made of and their weights, both (wanted, taps)."""
    weigh, reach = _FILTERS[resample]
    scale = size / wanted
    stretch = max(scale, 1.0)
    reach *= stretch
    centre = (np.arange(wanted) + 0.5) * scale
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    index = first[:, None] + np.arange(int(np.max(end - first)))
    inside = index < end[:, None]
    weight = np.where(inside, weigh((index - centre[:, None] + 0.5) * (1.0 / stretch)), 0.0)
    # One after the other, as a loop in C adds them: another order would round otherwise.
    total = np.add.accumulate(weight, 1)[:, -1:]
    weight = weight / np.where(total == 0, 1.0, total)
    fixed = np.trunc(weight * (1 << _BITS) + np.where(weight < 0, -0.5, 0.5)).astype(np.int32)
    return np.minimum(index, size - 1), fixed


def _filtered(x: np.ndarray, wanted: int, resample: int) -> np.ndarray:
    """Pixels whose last dimension is resized."""
    index, weight = _taps(x.shape[-1], wanted, resample)
    out = np.full((*x.shape[:-1], wanted), 1 << (_BITS - 1), np.int32)
    for tap in range(index.shape[1]):
        out += x[..., index[:, tap]] * weight[:, tap]
    return np.clip(out >> _BITS, 0, 255).astype(np.uint8)


def _both_ways(x: np.ndarray, size: tuple[int, int], resample: int) -> np.ndarray:
    """Along the width and along the height, rounded to bytes in between."""
    (height, width), (high, wide) = x.shape[1:], size
    # The order shows in the last bit: this is pillow 13's; before, the width always came first.
    height_first = high < height and 2 * (width - wide) < height - high
    for axis in (1, 2) if height_first else (2, 1):
        if x.shape[axis] != size[axis - 1]:
            lines = _filtered(np.moveaxis(x, axis, -1), size[axis - 1], resample)
            x = np.moveaxis(lines, -1, axis)
    return x


def _nearest(size: int, wanted: int) -> np.ndarray:
    """Which pixel each new one shows; places are added up, as pillow does, not multiplied."""
    step = size / wanted
    places = np.add.accumulate(np.array([step * 0.5] + [step] * (wanted - 1)))
    return np.minimum(places.astype(np.int64), size - 1)


def _divided_by_255(x: np.ndarray) -> np.ndarray:
    return ((x >> 8) + x) >> 8


def resampled(x: np.ndarray, size: tuple[int, int], resample: int) -> np.ndarray:
    """Bytes (channels, height, width) in another (height, width).

    >>> from votive.models.resampling import resampled
    >>> resampled(np.array([[[0, 100, 200, 255]]], np.uint8), (1, 2), 2)
    array([[[ 71, 209]]], dtype=uint8)
    """
    if resample != 0 and resample not in _FILTERS:
        raise ValueError(
            "resample must be 0 (nearest), 1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box) or "
            f"5 (Hamming), got {resample!r}."
        )
    if min(size) < 1 or min(x.shape[1:]) < 1:
        raise ValueError(f"a picture and its new size must have height and width, got {x.shape[1:]} and {size}.")
    if x.shape[1:] == tuple(size):
        return x.copy()
    if resample == 0:
        rows, columns = _nearest(x.shape[1], size[0]), _nearest(x.shape[2], size[1])
        return x[:, rows[:, None], columns]
    if x.shape[0] == 4:
        # What cannot be seen must not shine into its neighbours: colours are weighted by alpha.
        alpha = x[3:].astype(np.int64)
        colour = _divided_by_255(x[:3].astype(np.int64) * alpha + 128)
        x = np.concatenate([colour, alpha]).astype(np.uint8)
    x = _both_ways(x, size, resample)
    if x.shape[0] == 4:
        colour, alpha = x[:3].astype(np.int64), x[3:].astype(np.int64)
        whole = np.minimum(255 * colour // np.maximum(alpha, 1), 255)
        colour = np.where((alpha == 0) | (alpha == 255), colour, whole)
        x = np.concatenate([colour, alpha]).astype(np.uint8)
    return x


def over_white(x: np.ndarray) -> np.ndarray:
    """Bytes (4, height, width) of red, green, blue and alpha in front of white, without alpha.

    >>> from votive.models.resampling import over_white
    >>> over_white(np.array([[[0]], [[0]], [[0]], [[128]]], np.uint8)).ravel()
    array([127, 127, 127], dtype=uint8)
    """
    colour, alpha = x[:3].astype(np.int64), x[3:].astype(np.int64)
    # Behind everything is a full white, so what comes out is always full: 255 * 255.
    front = alpha * 255 * 255 * (1 << 7) // (255 * 255)
    blended = colour * front + 255 * (255 * (1 << 7) - front)
    return (_divided_by_255(blended + (0x80 << 7)) >> 7).astype(np.uint8)
