"""Sliding windows laid out and added up, on native kernels."""

from __future__ import annotations

from ...common.slot import Slot
from ...common.windows import places_of
from ..arrays import Args, Ints
from .loader import codes
from .pooling import filled_floats
from .rows import OUT, native


@native("_unfold", "unfold", accepts=lambda x: x.dtype in codes and bool(x.numel))
def unfold(x: Slot, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Args:
    places = places_of(x.shape[2:], kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places


@native("_fold", "fold", accepts=filled_floats)
def fold(x: Slot, size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Args:
    places = places_of(size, kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places
