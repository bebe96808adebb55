"""Values that follow a rule."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ...common.assign import assign
from ..arrays import Array


@kernel("_arange", into=True, widen=False)
def arange(start: float, step: float, size: int, dtype: dtype, device: object, out: Array) -> None:
    if out.dtype.kind in "iu":
        assign(out, int(start) + np.arange(size) * int(step))
    else:
        assign(out, float(start) + np.arange(size) * float(step))


def spaced(start: float, end: float, steps: int, kind: str) -> Any:
    """Equal distances in double precision, counted from the nearer end so that both are exact."""
    if steps < 2:
        return np.full(steps, start)
    if kind in "iu":
        start, end = int(start), int(end)
    i = np.arange(steps)
    step = (end - start) / (steps - 1)
    return np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i))


@kernel("_linspace", into=True, widen=False)
def linspace(start: float, end: float, steps: int, dtype: dtype, device: object, out: Array) -> None:
    assign(out, spaced(start, end, steps, out.dtype.kind))


@kernel("_logspace", into=True, widen=False)
def logspace(start: float, end: float, steps: int, base: float, dtype: dtype, device: object, out: Array) -> None:
    assign(out, np.power(base, spaced(start, end, steps, out.dtype.kind)))


@kernel("_triangle", into=True)
def triangle(row: int, col: int, offset: int, lower: bool, dtype: dtype, device: object, out: Array) -> None:
    out[...] = np.tril_indices(row, offset, col) if lower else np.triu_indices(row, offset, col)


@kernel("_choose", into=True)
def choose(n: int, r: int, with_replacement: bool, device: object, out: Array) -> None:
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if out.size:
        out[...] = list(pick(range(n), r))
