"""A tensor as a matrix, and parts of it for the eye: exact numbers, or bytes as an overview."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from ..glass.statistics import statistics

if TYPE_CHECKING:
    from ..tensor import Tensor


# Numbers that are sent exactly; above it, an overview of at most this many cells a side.
EXACT, CELLS = 1 << 16, 256


def matrix(tensor: Tensor) -> np.ndarray:
    """A view (or copy) of two dimensions in float32: the last one across, all others down.

    >>> from votive.studio.windows import matrix
    >>> matrix(votive.ones(1, 2, 3, 4)).shape
    (6, 4)
    """
    x = tensor.detach()
    if x.is_complex():
        x = x.abs()
    array = x.to(device="cpu", dtype=votive.float32).numpy()
    if array.ndim == 0:
        return array.reshape(1, 1)
    return array.reshape(-1, array.shape[-1]) if array.shape[-1] else array.reshape(-1, 0)


def bounds(given: list[int] | None, size: int, name: str) -> tuple[int, int]:
    """A window [a, b) inside a size; nothing given means all."""
    if given is None:
        return 0, size
    a, b = given
    a, b = min(a, size), min(b, size)
    if a > b:
        raise ValueError(f"{name} must begin before they end, got {given}.")
    return a, b


def window(
    tensor: Tensor, rows: list[int] | None, cols: list[int] | None, reduce: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data and blob of a part of a tensor: exact if it is small and no overview was asked for.

    An overview has in each cell what `reduce` makes of the numbers there: their "mean", the "max"
    or the one with the largest size ("absmax"); as bytes between `min` and `max`.
    """
    x = matrix(tensor)
    r, c = bounds(rows, x.shape[0], "rows"), bounds(cols, x.shape[1], "cols")
    part = x[r[0] : r[1], c[0] : c[1]]
    data: dict[str, Any] = {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("votive."),
        "rows": list(r),
        "cols": list(c),
        "total": list(x.shape),
    }
    finite = part[np.isfinite(part)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if reduce is None and part.size <= EXACT:
        return {**data, "min": low, "max": high, "exact": True}, {"values": part}
    cells = overview(part, reduce or "absmax")
    found = cells[np.isfinite(cells)]
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 0.0)
    summary = {**data, "min": low, "max": high, "exact": False, "reduce": reduce or "absmax"}
    return summary, {"values": as_bytes(cells, low, high)}


def overview(x: np.ndarray, reduce: str) -> np.ndarray:
    """The array in at most CELLS rows and columns."""
    for axis in (0, 1):
        size = x.shape[axis]
        if size > CELLS:
            starts = np.unique(np.linspace(0, size, CELLS, endpoint=False).astype(np.int64))
            x = _reduced(x, starts, size, axis, reduce)
    return x


def _reduced(x: np.ndarray, starts: np.ndarray, size: int, axis: int, reduce: str) -> np.ndarray:
    if reduce == "max":
        return np.maximum.reduceat(x, starts, axis)
    if reduce == "mean":
        counts = np.diff(np.append(starts, size)).astype(np.float32)
        shape = (-1, 1) if axis == 0 else (1, -1)
        return np.add.reduceat(x, starts, axis) / counts.reshape(shape)
    high, low = np.maximum.reduceat(x, starts, axis), np.minimum.reduceat(x, starts, axis)
    return np.where(np.abs(high) >= np.abs(low), high, low)


def as_bytes(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers between `low` and `high` as 0 to 255; what is not finite goes to the nearest end."""
    scale = 255.0 / (high - low) if high > low and math.isfinite(high - low) else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        found = (x.astype(np.float64) - low) * scale + 0.5
    return np.clip(np.nan_to_num(found, nan=0.0, posinf=255.0, neginf=0.0), 0, 255).astype(np.uint8)


def statistics_of(tensor: Tensor) -> dict[str, Any]:
    """Numbers about a tensor, with its histogram."""
    found = asdict(statistics(tensor))
    return {**found, "histogram": list(found["histogram"]), "shape": list(found["shape"])}
