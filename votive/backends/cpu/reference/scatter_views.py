"""Copies with one view replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints
from .strided import window


def _store(x: Array, src: Array, out: Array, part: Any) -> None:
    np.copyto(out, x)
    np.copyto(part, src, casting="unsafe")


@kernel("select_scatter", into=True, widen=False)
def select_scatter(x: Array, src: Array, dim: int, index: int, out: Array) -> None:
    _store(x, src, out, out[(slice(None),) * dim + (index, ...)])


@kernel("slice_scatter", into=True, widen=False)
def slice_scatter(x: Array, src: Array, dim: int, start: int, end: int, step: int, out: Array) -> None:
    _store(x, src, out, out[(slice(None),) * dim + (slice(start, end, step),)])


@kernel("diagonal_scatter", into=True, widen=False)
def diagonal_scatter(x: Array, src: Array, offset: int, dim1: int, dim2: int, out: Array) -> None:
    part = np.diagonal(out, offset, dim1, dim2)
    part.flags.writeable = True  # NumPy hands diagonals out read-only
    _store(x, src, out, part)


@kernel("_write_window", widen=False)
def write_window(x: Array, src: Array, stride: Ints, offset: int) -> Array:
    out = np.array(x, order="C")
    if src.size:
        np.copyto(window(out, src.shape, stride, offset), src, casting="unsafe")
    return out
