"""Running sums, products, extremes and recurrences along a dimension, natively."""

from __future__ import annotations

from ....core import dtype as dt
from ...common.slot import Slot
from ..arrays import Args
from .dtypes import FLOATS, first_float, wide
from .extremum import ordered
from .loader import codes
from .rows import OUT, OUT1, native

SUM, PRODUCT, LOGSUMEXP = range(3)


def _running(x: Slot, dim: int, dtype: dt.dtype, kind: int) -> Args:
    if dtype in FLOATS:
        return x, OUT, dim, kind, codes[wide(dtype)]
    if dtype.is_inexact or x.dtype.is_floating_point or dtype not in codes:
        return None
    return x, OUT, dim, kind, codes[dt.int64]


@native("cumsum", "scan", accepts=ordered)
def cumsum(x: Slot, dim: int, dtype: dt.dtype) -> Args:
    return _running(x, dim, dtype, SUM)


@native("cumprod", "scan", accepts=ordered)
def cumprod(x: Slot, dim: int, dtype: dt.dtype) -> Args:
    return _running(x, dim, dtype, PRODUCT)


@native("logcumsumexp", "scan", accepts=first_float)
def logcumsumexp(x: Slot, dim: int) -> Args:
    return _running(x, dim, x.dtype, LOGSUMEXP)


def _extreme(x: Slot, dim: int, largest: bool) -> Args:
    compared = wide(x.dtype) if x.dtype.is_floating_point else dt.int64
    return x, OUT, OUT1, dim, codes[compared], int(largest)


@native("_cummax", "scan_extreme", accepts=ordered)
def cummax(x: Slot, dim: int) -> Args:
    return _extreme(x, dim, True)


@native("_cummin", "scan_extreme", accepts=ordered)
def cummin(x: Slot, dim: int) -> Args:
    return _extreme(x, dim, False)


@native(
    "_recurrence",
    "recurrence",
    accepts=lambda gain, x: x.dtype in FLOATS and gain.dtype in FLOATS and gain.shape == x.shape,
)
def recurrence(gain: Slot, x: Slot, dim: int, reverse: bool) -> Args:
    return gain, x, OUT, dim, int(reverse)
