"""Runtime arguments while a launch is planned."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.layout import Spec


class Slot:
    """A runtime argument while a launch is planned: its spec is known, its value comes later."""

    # A tensor's Spec; a tuple of those; of a number one of its type, and then there is no more.
    spec: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: dt.dtype
    ndim: int
    numel: int
    contiguous: bool

    __slots__ = ("contiguous", "dtype", "index", "ndim", "numel", "shape", "spec", "strides")

    def __init__(self, index: int, spec: Any) -> None:
        self.index, self.spec = index, spec
        if isinstance(spec, Spec):
            self.shape, self.ndim, self.dtype = spec.shape, spec.ndim, spec.dtype
            self.strides, self.numel, self.contiguous = spec.strides, spec.numel, spec.contiguous
