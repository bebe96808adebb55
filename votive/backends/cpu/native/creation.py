"""New tensors on native kernels."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .fill import plain
from .loader import codes
from .rows import OUT, native


@native("_empty", "nothing")
def empty(size: Ints, stride: Ints, dtype: dt.dtype, device: object) -> Args:
    return ()


@native("_full", "fill")
def full(size: Ints, stride: Ints, value: Slot, dtype: dt.dtype, device: object) -> Args:
    return (OUT, value) if plain(value.spec, dtype) else None


@native("_eye", "eye")
def eye(n: int, m: int, dtype: dt.dtype, device: object) -> Args:
    return (OUT,) if dtype in codes else None
