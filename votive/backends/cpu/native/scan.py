"""Running sums, products, extremes and recurrences along a dimension, natively."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .extremum import ordered
from .loader import codes
from .reduction import wide
from .rows import OUT, OUT1, native

SUM, PRODUCT, LOGSUMEXP = range(3)
_FLOATS = (dt.float32, dt.float64, *dt.HALF)


def _running(x: Any, dim: int, dtype: dt.dtype, kind: int) -> Any:
    if dtype in _FLOATS:
        return x, OUT, dim, kind, codes[wide(dtype)]
    if dtype.is_inexact or x.dtype.is_floating_point or dtype not in codes:
        return None
    return x, OUT, dim, kind, codes[dt.int64]


@native("cumsum", "scan", accepts=ordered)
def cumsum(x: Any, dim: int, dtype: dt.dtype) -> Any:
    return _running(x, dim, dtype, SUM)


@native("cumprod", "scan", accepts=ordered)
def cumprod(x: Any, dim: int, dtype: dt.dtype) -> Any:
    return _running(x, dim, dtype, PRODUCT)


@native("logcumsumexp", "scan", accepts=lambda x: x.dtype in _FLOATS)
def logcumsumexp(x: Any, dim: int) -> Any:
    return _running(x, dim, x.dtype, LOGSUMEXP)


def _extreme(x: Any, dim: int, largest: bool) -> Any:
    compared = wide(x.dtype) if x.dtype.is_floating_point else dt.int64
    return x, OUT, OUT1, dim, codes[compared], int(largest)


@native("_cummax", "scan_extreme", accepts=ordered)
def cummax(x: Any, dim: int) -> Any:
    return _extreme(x, dim, True)


@native("_cummin", "scan_extreme", accepts=ordered)
def cummin(x: Any, dim: int) -> Any:
    return _extreme(x, dim, False)


@native(
    "_recurrence",
    "recurrence",
    accepts=lambda gain, x: x.dtype in _FLOATS and gain.dtype in _FLOATS and gain.shape == x.shape,
)
def recurrence(gain: Any, x: Any, dim: int, reverse: bool) -> Any:
    return gain, x, OUT, dim, int(reverse)
