"""Copies and casts on native kernels; the types that they lack stay with NumPy."""

from __future__ import annotations

from ....core.dtype import dtype
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known
from .loader import codes
from .rows import OUT, native


@native("_copy_as", "copy", accepts=known, careful=True)
def copy_as(x: Slot, dtype: dtype, stride: Ints) -> Args:
    return (OUT, x) if dtype in codes else None


@native("copy", "copy", accepts=known, careful=True)
def copy(x: Slot, src: Slot) -> Args:
    return OUT, src
