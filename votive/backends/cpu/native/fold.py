"""Sliding windows laid out and added up, on native kernels."""

from __future__ import annotations

from ..arrays import Args, Ints
from ..reference.fold import places_of
from .loader import codes
from .pooling import filled_floats
from .rows import OUT, Slot, native


@native("_unfold", "unfold", accepts=lambda x: x.dtype in codes and bool(x.numel))
def unfold(x: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Args:
    places = places_of(x.shape[2:], kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places


@native("_fold", "fold", accepts=filled_floats)
def fold(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Args:
    places = places_of(size, kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places
