"""Padding on native kernels: tables of the positions that elements come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ..reference.padding import _source
from .loader import codes
from .pooling import floats
from .rows import OUT, native


def _any(*specs: Any) -> bool:
    return specs[0].dtype in codes and bool(specs[0].numel)


def take(x: Any, tables: list[Any]) -> Any:
    """Arguments of take_by_tables, where no table names the fill value."""
    whole = [None if t is None else np.ascontiguousarray(t, np.int64) for t in tables]
    return x, OUT, *whole, np.zeros(1, x.dtype.np)


def _tables(shape: Any, pad: Any, mode: str) -> list[Any]:
    tables: list[Any] = [None] * len(shape)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        if before or after:
            tables[-1 - i] = _source(shape[-1 - i], before, after, mode)
    return tables


@native("_pad", "take_by_tables", accepts=_any)
def pad(x: Any, pad: Any, mode: str) -> Any:
    tables = _tables(x.shape, pad, mode)
    if x.ndim > 8 or any(t is not None and not len(t) for t in tables):
        return None
    return take(x, tables)


@native("_pad_transpose", "add_by_tables", accepts=floats)
def pad_transpose(x: Any, size: Any, pad: Any, mode: str) -> Any:
    n = len(pad) // 2
    tables = _tables(size, pad, mode)[-n:]
    tables = [np.arange(s) if t is None else t for t, s in zip(tables, size[-n:], strict=True)]
    tables = [np.array([0])] * (3 - n) + tables
    return x, OUT, *(np.ascontiguousarray(t, np.int64) for t in tables), n


@native("constant_pad_nd", "pad_constant", accepts=_any)
def constant_pad_nd(x: Any, pad: Any, value: Any) -> Any:
    if x.dtype in (dt.complex64, dt.complex128) or not 0 < x.ndim <= 8:
        return None
    tables: list[Any] = [None] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        size = x.shape[-1 - i]
        if before or after:
            at = np.arange(-before, size + after)
            if not len(at):
                return None
            tables[-1 - i] = np.ascontiguousarray(np.where((at >= 0) & (at < size), at, -1), np.int64)
    return x, OUT, *tables, value
