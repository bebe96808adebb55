"""Values that follow a rule, and the identity, on native kernels."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args
from .fill import plain
from .rows import OUT, native


def _kinds(a: Slot, b: Slot) -> int:
    """Which of two numbers are integers, as bits."""
    return int(isinstance(a.spec, int)) | int(isinstance(b.spec, int)) << 1


@native("_arange", "arange")
def arange(start: Slot, step: Slot, size: int, dtype: dt.dtype, device: object) -> Args:
    if not plain(start.spec, dtype) or not plain(step.spec, dtype):
        return None
    return OUT, _kinds(start, step) | (dtype.category == dt.INT) << 2, start, step


@native("_linspace", "linspace")
def linspace(start: Slot, end: Slot, steps: int, dtype: dt.dtype, device: object) -> Args:
    # Integers are cut off, so that there the last bit before counts: left to the reference.
    if not dtype.is_floating_point or not plain(start.spec, dtype) or not plain(end.spec, dtype):
        return None
    return OUT, _kinds(start, end), start, end


@native("_triangle", "triangle_indices")
def triangle(row: int, col: int, offset: int, lower: bool, dtype: dt.dtype, device: object) -> Args:
    if dtype not in (dt.int64, dt.int32):
        return None
    return OUT, row, col, offset, int(lower)
