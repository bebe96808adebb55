"""Smallest and largest values and their places, natively. NaN wins over every number."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .loader import codes
from .reduction import MAX, MIN, arranged, mask
from .rows import OUT, OUT1, native

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


def ordered(x: Any) -> bool:
    """Whether the kernels can compare elements of this type."""
    return x.dtype in _COMPARED


@native("amax", "reduce", accepts=ordered)
def amax(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    return arranged(x, dim, MAX, _COMPARED[x.dtype])


@native("amin", "reduce", accepts=ordered)
def amin(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    return arranged(x, dim, MIN, _COMPARED[x.dtype])


def _pick(x: Any, values: Any, places: Any, dim: int | None, largest: bool) -> Any:
    compared = _COMPARED[x.dtype]
    if compared in (dt.bool_, dt.uint8):
        compared = dt.int32
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    return x, values, places, mask(dims), codes[compared], int(largest)


@native("argmax", "reduce_pick", accepts=ordered)
def argmax(x: Any, dim: int | None, keepdim: bool) -> Any:
    return _pick(x, None, OUT, dim, True)


@native("argmin", "reduce_pick", accepts=ordered)
def argmin(x: Any, dim: int | None, keepdim: bool) -> Any:
    return _pick(x, None, OUT, dim, False)


@native("_max_dim", "reduce_pick", accepts=ordered)
def max_dim(x: Any, dim: int, keepdim: bool) -> Any:
    return _pick(x, OUT, OUT1, dim, True)


@native("_min_dim", "reduce_pick", accepts=ordered)
def min_dim(x: Any, dim: int, keepdim: bool) -> Any:
    return _pick(x, OUT, OUT1, dim, False)
