"""Fourier transforms, natively."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .rows import OUT, native


def _serves(x: Slot) -> bool:
    return x.dtype.to_real() in (dt.float32, dt.float64) and x.dtype.is_inexact


def _several(x: Slot, dim: Ints) -> Ints:
    """Dimensions that are not of size one: those are transformed already."""
    return tuple(d for d in dim if x.shape[d] != 1)


def _scale(sizes: list[int], power: float) -> float:
    return float(math.prod(sizes)) ** -power


@native("_fft_r2c", "fft_r2c", accepts=_serves)
def r2c(x: Slot, dim: Ints, power: float, forward: bool) -> Args:
    if x.dtype.is_complex or not x.numel:
        return None
    return x, OUT, _scale([x.shape[d] for d in dim], power), int(forward), *_several(x, dim[:-1]), dim[-1]


@native("_fft_c2r", "fft_c2r", accepts=_serves)
def c2r(x: Slot, dim: Ints, power: float, size: int, forward: bool) -> Args:
    # NumPy cuts or fills what has another length.
    if not x.dtype.is_complex or not x.numel or x.shape[dim[-1]] != size // 2 + 1:
        return None
    return x, OUT, _scale([*(x.shape[d] for d in dim[:-1]), size], power), int(forward), *_several(x, dim[:-1]), dim[-1]


@native("_fft_c2c", "fft_c2c", accepts=_serves)
def c2c(x: Slot, dim: Ints, power: float, forward: bool) -> Args:
    if not dim or not x.numel:
        return None
    return x, OUT, _scale([x.shape[d] for d in dim], power), int(forward), *(_several(x, dim) or dim[-1:])
