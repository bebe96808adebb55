"""Tables of resizing: which inputs each output is made of, and with which weights. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def _scale(size: int, out: int, align: bool, given: float, real: Any) -> Any:
    """The step between outputs, counted in inputs."""
    if align:
        return real(size - 1) / real(out - 1) if out > 1 else real(0)
    return real(1.0 / given) if given > 0 else real(size) / real(out)


def _cubic(distance: Any, a: float) -> Any:
    """Keys' kernel: Keys 1981, "Cubic convolution interpolation", equation 4."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d < 1, near, np.where(d < 2, far, 0)).astype(d.dtype)


# Antialiasing filters and how far they reach. The cubic one is Keys' own, a = -1/2; plain bicubic
# has a = -3/4, as in OpenCV.
_FILTERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "linear": (lambda d: np.maximum(1 - np.abs(d), 0), 1),
    "cubic": (lambda d: _cubic(d, -0.5), 2),
    "lanczos": (lambda d: np.where(np.abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0), 3),
}
_PLAIN_CUBIC = -0.75


def _smooth_table(size: int, out: int, mode: str, scale: Any, real: Any) -> tuple[Any, Any]:
    """All inputs within reach of a filter that is stretched by the scale when shrinking."""
    weigh, reach = _FILTERS[mode]
    stretch = max(scale, real(1))
    centre = scale * (np.arange(out, dtype=real) + real(0.5))
    support = reach * stretch
    first = np.maximum((centre - support + real(0.5)).astype(np.int64), 0)
    last = np.minimum((centre + support + real(0.5)).astype(np.int64), size)
    at = first[:, None] + np.arange(max(int((last - first).max()), 1))
    weight = weigh((at - centre[:, None] + real(0.5)) / stretch)
    weight = np.where(at < last[:, None], weight, 0)
    total = weight.sum(1, keepdims=True)
    weight = np.divide(weight, total, where=total != 0, out=weight)
    return at.clip(0, size - 1), weight.astype(real)


def _table(size: int, out: int, mode: str, align: bool, smooth: bool, given: float, real: Any) -> tuple[Any, Any]:
    """(index, weight), each (out, inputs per output), for one dimension."""
    scale = _scale(size, out, align, given, real)
    if smooth:
        return _smooth_table(size, out, mode, scale, real)
    at = np.arange(out, dtype=real)
    if mode.startswith("nearest"):
        at = at if mode == "nearest" else at + real(0.5)
        index = np.floor(at * scale).astype(np.int64).clip(max=size - 1)
        return index[:, None], np.ones((out, 1), real)
    # Rounded once, as a fused multiply-add does: in float32 it matters for large images.
    where = at * scale if align else ((at + real(0.5)) * np.float64(scale) - 0.5).astype(real)
    if mode == "linear":
        where = np.maximum(where, 0)
        low = np.floor(where).astype(np.int64).clip(max=size - 1)
        part = (where - low).astype(real).clip(0, 1)
        index = np.stack([low, (low + 1).clip(max=size - 1)], 1)
        return index, np.stack([1 - part, part], 1)
    low = np.floor(where)
    part = (where - low)[:, None]
    step = np.arange(-1, 3)
    index = (low.astype(np.int64)[:, None] + step).clip(0, size - 1)
    return index, _cubic(part - step.astype(real), _PLAIN_CUBIC)


def resampling_tables(
    sizes: Any, outs: Any, mode: str, align: bool, smooth: bool, scales: Any, dtype: Any
) -> Iterator[tuple[int, Any, Any]]:
    """(dimension, index, weight), innermost first, without those that stay as they are."""
    real = np.float32 if dtype == np.float32 or mode.startswith("nearest") else np.float64
    # As in torch, an unchanged size wins over a scale that is not quite 1, and for images a doubled
    # one over a scale that is not quite 2. Plain bicubic and other nearest modes go by the scale.
    images = mode == "nearest" and len(sizes) == 2
    by_size = smooth or images or mode == "linear" or (dtype == np.uint8 and mode == "cubic")
    for axis in range(-1, -len(sizes) - 1, -1):
        size, out, scale = sizes[axis], outs[axis], scales[axis]
        if by_size and out == size:
            continue
        if images and out == 2 * size:
            scale = 2.0
        yield axis, *_table(size, out, mode, align, smooth, scale, real)


def fixed_point(index: Any, weight: Any) -> tuple[Any, int]:
    """Weights as 16-bit integers and how many of their bits are fractional, as in Pillow."""
    for k in range(index.shape[1] - 1, 0, -1):
        again = index[:, k] == index[:, k - 1]  # at the borders: add first, then round once
        weight[again, k - 1] += weight[again, k]
        weight[again, k] = 0
    largest = weight.max()
    bits = next(b for b in range(23) if b == 22 or int(0.5 + largest * (1 << (b + 1))) >= 1 << 15)
    scaled = weight * (1 << bits)
    return np.trunc(scaled + np.copysign(0.5, scaled)).astype(np.int64), bits


def transposed_table(index: Any, weight: Any, size: int) -> tuple[Any, Any]:
    """The transpose of a table: for each input the outputs it is part of, with their weights."""
    inputs, outputs = index.reshape(-1), np.repeat(np.arange(len(index)), index.shape[1])
    parts = weight.reshape(-1)
    real = parts != 0
    inputs, outputs, parts = inputs[real], outputs[real], parts[real]
    order = np.argsort(inputs, kind="stable")
    inputs, outputs, parts = inputs[order], outputs[order], parts[order]
    counts = np.bincount(inputs, minlength=size)
    slot = np.arange(len(inputs)) - np.repeat(np.cumsum(counts) - counts, counts)
    most = max(int(counts.max()), 1)
    at, by = np.zeros((size, most), np.int64), np.zeros((size, most))
    at[inputs, slot], by[inputs, slot] = outputs, parts
    # Unused slots repeat a neighbour's position, which is in the cache.
    return np.where(by != 0, at, at[:, :1]), by
