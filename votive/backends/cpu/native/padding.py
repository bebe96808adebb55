"""Padding on native kernels: tables of the positions that elements come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...common.slot import Slot
from ..arrays import Args, Ints
from ..reference.padding import _source
from .dtypes import nonempty
from .pooling import filled_floats
from .rows import OUT, native


def take(x: Slot, tables: list[Any]) -> Any:
    """Arguments of take_by_tables, where no table names the fill value."""
    whole = [None if t is None else np.ascontiguousarray(t, np.int64) for t in tables]
    return x, OUT, *whole, np.zeros(1, x.dtype.np)


def _tables(shape: Ints, pad: Ints, mode: str) -> list[Any]:
    tables: list[Any] = [None] * len(shape)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        if before or after:
            tables[-1 - i] = _source(shape[-1 - i], before, after, mode)
    return tables


@native("_pad", "take_by_tables", accepts=nonempty)
def pad(x: Slot, pad: Ints, mode: str) -> Args:
    tables = _tables(x.shape, pad, mode)
    if x.ndim > 8 or any(t is not None and not len(t) for t in tables):
        return None
    return take(x, tables)


@native("_pad_transpose", "add_by_tables", accepts=filled_floats)
def pad_transpose(x: Slot, size: Ints, pad: Ints, mode: str) -> Args:
    n = len(pad) // 2
    tables = _tables(size, pad, mode)[-n:]
    tables = [np.arange(s) if t is None else t for t, s in zip(tables, size[-n:], strict=True)]
    tables = [np.array([0])] * (3 - n) + tables
    return x, OUT, *(np.ascontiguousarray(t, np.int64) for t in tables), n
