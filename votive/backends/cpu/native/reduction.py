"""Sums, products and tests over dimensions, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .loader import codes
from .rows import OUT, native

# In the order of the enumeration in src/vt/reduce.h.
SUM, NANSUM, SUM_ABS, SUM_SQUARE, PROD, MAX, MIN, MAX_ABS, MIN_ABS = range(9)


def known(*specs: Any) -> bool:
    """Whether the kernels know the element types."""
    return all(s.dtype in codes for s in specs)


def mask(dim: tuple[int, ...]) -> int:
    """Dimensions as bits."""
    return sum(1 << d for d in dim)


def wide(dtype: dt.dtype) -> dt.dtype:
    """The type in which floating-point elements are reduced."""
    return dt.float64 if dtype is dt.float64 else dt.float32


def arranged(
    x: Any,
    dim: tuple[int, ...],
    kind: int,
    compute: dt.dtype,
    divisor: float = 1.0,
    root: float = 1.0,
    power: float = 1.0,
) -> tuple[Any, ...]:
    """The arguments of the kernel `reduce`."""
    return x, OUT, mask(dim), kind, codes[compute], float(divisor), float(root), float(power)


def _total(x: Any, dim: tuple[int, ...], dtype: dt.dtype, kind: int, truth: int, divisor: int = 1) -> Any:
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
def sum_(x: Any, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Any:
    return _total(x, dim, dtype, SUM, MAX)


@native("nansum", "reduce", accepts=known)
def nansum(x: Any, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Any:
    if x.dtype.is_floating_point and not dtype.is_floating_point:
        return None
    return _total(x, dim, dtype, NANSUM if x.dtype.is_floating_point else SUM, MAX)


@native("mean", "reduce", accepts=known)
def mean(x: Any, dim: tuple[int, ...], keepdim: bool, dtype: dt.dtype) -> Any:
    return _total(x, dim, dtype, SUM, MAX, count(x.shape, dim))


def count(shape: tuple[int, ...], dim: tuple[int, ...]) -> int:
    """How many elements go into one result."""
    n = 1
    for d in dim:
        n *= shape[d]
    return n


@native("prod", "reduce", accepts=known)
def prod(x: Any, dim: int | None, keepdim: bool, dtype: dt.dtype) -> Any:
    dims = tuple(range(x.ndim)) if dim is None or x.ndim == 0 else (dim,)
    return _total(x, dims, dtype, PROD, MIN)


@native("all", "reduce", accepts=known)
def all_(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    return arranged(x, dim, MIN, dt.bool_)


@native("any", "reduce", accepts=known)
def any_(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    return arranged(x, dim, MAX, dt.bool_)


@native("count_nonzero", "reduce", accepts=known)
def count_nonzero(x: Any, dim: tuple[int, ...]) -> Any:
    return arranged(x, dim, SUM, dt.bool_)


@native("logsumexp", "reduce_logsumexp", accepts=lambda x: known(x) and not x.dtype.is_complex)
def logsumexp(x: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    return x, OUT, mask(dim)
