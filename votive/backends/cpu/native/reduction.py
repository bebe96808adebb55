"""Sums, products and tests over dimensions, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known, wide
from .loader import codes
from .rows import OUT, native

# In the order of the enumeration in src/vt/reduce.h.
SUM, NANSUM, SUM_ABS, SUM_SQUARE, PROD, MAX, MIN, MAX_ABS, MIN_ABS = range(9)


def mask(dim: Ints) -> int:
    """Dimensions as bits."""
    return sum(1 << d for d in dim)


def arranged(
    x: Slot, dim: Ints, kind: int, compute: dt.dtype, divisor: float = 1.0, root: float = 1.0, power: float = 1.0
) -> tuple[Any, ...]:
    """The arguments of the kernel `reduce`."""
    return x, OUT, mask(dim), kind, codes[compute], float(divisor), float(root), float(power)


def _total(x: Slot, dim: Ints, dtype: dt.dtype, kind: int, truth: int, divisor: int = 1) -> Args:
    """A sum or product in `dtype`; `truth` is what it is of bools."""
    if dtype is dt.bool_:
        return arranged(x, dim, truth, dt.bool_)
    if dtype.is_complex:
        if dtype is not x.dtype or kind == PROD:
            return None
        return arranged(x, dim, kind, dt.float32 if dtype is dt.complex64 else dt.float64, divisor)
    if x.dtype.is_complex or dtype not in codes:
        return None
    if dtype.is_floating_point:
        same = kind == SUM and dtype is x.dtype is dt.bfloat16
        return arranged(x, dim, kind, dtype if same else wide(dtype), divisor)
    if x.dtype.is_floating_point:
        return None
    if kind != PROD and x.dtype in (dt.bool_, dt.uint8):
        return arranged(x, dim, kind, x.dtype)
    return arranged(x, dim, kind, dt.int64)


@native("sum", "reduce", accepts=known)
def sum_(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Args:
    return _total(x, dim, dtype, SUM, MAX)


@native("nansum", "reduce", accepts=known)
def nansum(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Args:
    if x.dtype.is_floating_point and not dtype.is_floating_point:
        return None
    return _total(x, dim, dtype, NANSUM if x.dtype.is_floating_point else SUM, MAX)


@native("mean", "reduce", accepts=known)
def mean(x: Slot, dim: Ints, keepdim: bool, dtype: dt.dtype) -> Args:
    return _total(x, dim, dtype, SUM, MAX, count(x.shape, dim))


def count(shape: Ints, dim: Ints) -> int:
    """How many elements go into one result."""
    n = 1
    for d in dim:
        n *= shape[d]
    return n


@native("prod", "reduce", accepts=known)
def prod(x: Slot, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Args:
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    return _total(x, dims, dtype, PROD, MIN)


@native("all", "reduce", accepts=known)
def all_(x: Slot, dim: Ints, keepdim: bool) -> Args:
    return arranged(x, dim, MIN, dt.bool_)


@native("any", "reduce", accepts=known)
def any_(x: Slot, dim: Ints, keepdim: bool) -> Args:
    return arranged(x, dim, MAX, dt.bool_)


@native("count_nonzero", "reduce", accepts=known)
def count_nonzero(x: Slot, dim: Ints) -> Args:
    return arranged(x, dim, SUM, dt.bool_)


@native("logsumexp", "reduce_logsumexp", accepts=lambda x: known(x) and not x.dtype.is_complex)
def logsumexp(x: Slot, dim: Ints, keepdim: bool) -> Args:
    return x, OUT, mask(dim)


@native("logsumexp", "reduce", accepts=lambda x: known(x) and x.dtype.is_floating_point, priority=11)
def logsumexp_of_one(x: Slot, dim: Ints, keepdim: bool) -> Args:
    if not x.numel or any(x.shape[d] != 1 for d in dim):
        return None
    return arranged(x, dim, MAX, dt.float64 if x.dtype is dt.float64 else dt.float32)
