"""Sliding windows laid out and added up, on native kernels."""

from __future__ import annotations

from typing import Any

from ...common.windows import places_of
from .loader import codes
from .pooling import floats
from .rows import OUT, native


@native("_unfold", "unfold", accepts=lambda x: x.dtype in codes and bool(x.numel))
def unfold(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    places = places_of(x.shape[2:], kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places


@native("_fold", "fold", accepts=floats)
def fold(x: Any, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    places = places_of(size, kernel, stride, padding, dilation)
    return x, OUT, *stride, *padding, *dilation, *kernel, *places
