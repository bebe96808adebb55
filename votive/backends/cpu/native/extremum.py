"""Smallest and largest values and their places, natively. NaN wins over every number."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..arrays import Args, Ints
from .loader import codes
from .reduction import MAX, MIN, arranged, mask
from .rows import OUT, OUT1, Out, native

# The type in which elements are compared.
_COMPARED = {
    dt.bool_: dt.bool_,
    dt.uint8: dt.uint8,
    dt.int8: dt.int32,
    dt.int16: dt.int32,
    dt.int32: dt.int32,
    dt.int64: dt.int64,
    dt.float16: dt.float32,
    dt.bfloat16: dt.float32,
    dt.float32: dt.float32,
    dt.float64: dt.float64,
}


def ordered(x: Spec) -> bool:
    """Whether the kernels can compare elements of this type."""
    return x.dtype in _COMPARED


@native("amax", "reduce", accepts=ordered)
def amax(x: Slot, dim: Ints, keepdim: bool) -> Args:
    return arranged(x, dim, MAX, _COMPARED[x.dtype])


@native("amin", "reduce", accepts=ordered)
def amin(x: Slot, dim: Ints, keepdim: bool) -> Args:
    return arranged(x, dim, MIN, _COMPARED[x.dtype])


def _pick(x: Slot, values: Out | None, places: Out, dim: int | None, largest: bool) -> Args:
    compared = _COMPARED[x.dtype]
    if compared in (dt.bool_, dt.uint8):
        compared = dt.int32
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    return x, values, places, mask(dims), codes[compared], int(largest)


@native("argmax", "reduce_pick", accepts=ordered)
def argmax(x: Slot, dim: int | None, keepdim: bool) -> Args:
    return _pick(x, None, OUT, dim, True)


@native("argmin", "reduce_pick", accepts=ordered)
def argmin(x: Slot, dim: int | None, keepdim: bool) -> Args:
    return _pick(x, None, OUT, dim, False)


@native("_max_dim", "reduce_pick", accepts=ordered)
def max_dim(x: Slot, dim: int, keepdim: bool) -> Args:
    return _pick(x, OUT, OUT1, dim, True)


@native("_min_dim", "reduce_pick", accepts=ordered)
def min_dim(x: Slot, dim: int, keepdim: bool) -> Args:
    return _pick(x, OUT, OUT1, dim, False)
