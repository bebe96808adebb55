"""Sampling at positions, corner by corner, and grids of positions. Knows arrays only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints


def _bring_back(x: Array, size: int, padding: str, align: bool) -> tuple[Any, Any]:
    """Positions as the padding sees them, and how much they move with the given ones."""
    slope = np.ones_like(x)
    if padding == "zeros":
        return x, slope
    if padding == "reflection":
        low, span = (0.0, size - 1) if align else (-0.5, size)
        if span == 0:
            return np.zeros_like(x), np.zeros_like(x)
        away = np.where(x < low, low - x, x - low)
        slope = np.where(x < low, -slope, slope)
        turns = np.floor(away / span)
        rest, odd = away - turns * span, turns % 2 > 0
        x, slope = np.where(odd, span - rest, rest) + low, np.where(odd, -slope, slope)
    # The ends count as outside, and NaN as the first element.
    inside = (x > 0) & (x < size - 1)
    return np.where(x > 0, np.minimum(x, size - 1), 0).astype(x.dtype), np.where(inside, slope, 0)


def _cubic(d: Array, near: bool, sign: int) -> tuple[Any, Any]:
    """Keys' kernel with a = -3/4 at a distance of 0..1 (near) or 1..2, and its derivative."""
    a = -0.75
    if near:
        return ((a + 2) * d - (a + 3)) * d * d + 1, sign * (3 * (a + 2) * d - 2 * (a + 3)) * d
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, sign * ((3 * a * d - 10 * a) * d + 8 * a)


def _along(coordinate: Array, size: int, mode: str, padding: str, align: bool) -> list[Any]:
    """(element, whether it exists, weight, its derivative) of each tap along one dimension."""
    scale = (size - 1) / 2 if align else size / 2
    x = (coordinate + 1).astype(np.float64) * scale - (0.0 if align else 0.5)
    x, slope = x.astype(coordinate.dtype), np.ones_like(coordinate)
    late = mode == "bicubic"  # it leaves the position where it is and brings back each of its taps
    if not late:
        x, slope = _bring_back(x, size, padding, align)
    if mode == "nearest":
        taps = [(np.round(x), np.ones_like(x), np.zeros_like(x))]
    else:
        low = np.floor(x)
        part = x - low
        one = np.ones_like(x)
        if mode == "bilinear":
            taps = [(low, 1 - part, -one), (low + 1, part, one)]
        else:
            far = ((part + 1, False, 1), (part, True, 1), (1 - part, True, -1), (2 - part, False, -1))
            taps = [(low + k - 1, *_cubic(*f)) for k, f in enumerate(far)]
    found = []
    for element, weight, by in taps:
        if late:
            element = _bring_back(element, size, padding, align)[0]
        inside = (element >= 0) & (element <= size - 1)
        place = np.where(inside, element, 0).astype(np.int64)
        found.append((place, inside, weight, by * slope * scale))
    return found


def _corners(x: Array, grid: Array, mode: str, padding: str, align: bool) -> Iterator[Any]:
    """Index of the element (N, 1, *places), whether it exists, and (weight, derivative) by dim."""
    n, sizes = grid.shape[-1], x.shape[2:]
    with np.errstate(invalid="ignore", over="ignore"):
        taps = [_along(grid[..., n - 1 - d], sizes[d], mode, padding, align) for d in range(n)]
    for corner in itertools.product(*taps):
        index, inside = np.zeros((), np.int64), np.ones((), np.bool_)
        for size, (place, within, *_) in zip(sizes, corner):
            index, inside = index * size + place, inside & within
        yield index[:, None], inside[:, None], [(w[:, None], by[:, None]) for *_, w, by in corner]


def _values(x: Array, index: Array, inside: Array) -> Any:
    sample, channel = np.ogrid[: x.shape[0], : x.shape[1]]
    lead = (..., *(None,) * (index.ndim - 2))
    flat = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    values = flat[sample[lead], channel[lead], index]
    return np.where(inside, values, 0)


@kernel("_grid_sample")
def grid_sample(x: Array, grid: Array, mode: str, padding: str, align: bool) -> Array:
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for index, inside, taps in _corners(x, grid, mode, padding, align):
        value = _values(x, index, inside)
        out += value if mode == "nearest" else value * math.prod(w for w, _ in taps)
    return out


@kernel("_grid_sample_backward")
def grid_sample_backward(
    g: Array, x: Array, grid: Array, mode: str, padding: str, align: bool, by_input: bool, by_grid: bool
) -> tuple[Any, Any]:
    back = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    at = np.zeros_like(grid)
    sample, channel = np.ogrid[: x.shape[0], : x.shape[1]]
    lead = (..., *(None,) * (grid.ndim - 2))
    n = grid.shape[-1]
    for index, inside, taps in _corners(x, grid, mode, padding, align):
        weight = 1 if mode == "nearest" else math.prod(w for w, _ in taps)
        if by_input:
            np.add.at(back, (sample[lead], channel[lead], index), np.where(inside, g * weight, 0))
        if by_grid and mode != "nearest":
            met = (g * _values(x, index, inside)).sum(1)
            for d in range(n):
                parts = (by if e == d else w for e, (w, by) in enumerate(taps))
                at[..., n - 1 - d] += met * math.prod(parts)[:, 0]
    empty = np.zeros(0, x.dtype)
    return back.reshape(x.shape) if by_input else empty, at if by_grid else empty


def centres(n: int, align: bool, real: type[np.floating[Any]]) -> Any:
    """Coordinates of n elements in -1..1: the ends are the outer centres (align) or edges."""
    span = n - 1 if align else n
    return (np.arange(1 - n, n, 2) / max(span, 1)).astype(real)


def _base(size: Ints, align: bool, real: type[np.floating[Any]]) -> Any:
    """(places, n + 1): the coordinates of each element, the innermost first, and 1."""
    lines = [centres(s, align, real) for s in size[2:]]
    axes = np.meshgrid(*lines, indexing="ij")
    return np.stack([*reversed(axes), np.ones_like(axes[0])], -1).reshape(-1, len(size) - 1)


@kernel("_affine_grid")
def affine_grid(theta: Array, size: Ints, align: bool) -> Array:
    points = _base(size, align, theta.dtype) @ np.swapaxes(theta, 1, 2)
    return points.reshape(size[0], *size[2:], len(size) - 2)


@kernel("_affine_grid_transpose")
def affine_grid_transpose(g: Array, size: Ints, align: bool) -> Array:
    flat = g.reshape(size[0], math.prod(size[2:]), len(size) - 2)
    return np.swapaxes(flat, 1, 2) @ _base(size, align, g.dtype)
