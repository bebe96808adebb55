"""Copies with one view replaced, on native kernels."""

from __future__ import annotations

from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from .copy import known
from .rows import OUT, native


def _written(x: Slot, src: Slot, shift: int, steps: tuple[int, ...]) -> Any:
    item = x.dtype.itemsize
    return OUT, x, src, shift * item, *[s * item for s in steps]


def _strides(x: Slot) -> tuple[int, ...]:
    """Those of the result."""
    out: Spec = x.spec.dense_like()
    return out.strides


@native("select_scatter", "write_window", accepts=known)
def select_scatter(x: Slot, src: Slot, dim: int, index: int) -> Any:
    s = _strides(x)
    return _written(x, src, index * s[dim], s[:dim] + s[dim + 1 :])


@native("slice_scatter", "write_window", accepts=known)
def slice_scatter(x: Slot, src: Slot, dim: int, start: int, end: int, step: int) -> Any:
    s = _strides(x)
    return _written(x, src, start * s[dim], (*s[:dim], s[dim] * step, *s[dim + 1 :]))


@native("diagonal_scatter", "write_window", accepts=known)
def diagonal_scatter(x: Slot, src: Slot, offset: int, dim1: int, dim2: int) -> Any:
    s = _strides(x)
    shift = offset * s[dim2] if offset >= 0 else -offset * s[dim1]
    rest = [s[d] for d in range(x.ndim) if d not in (dim1, dim2)]
    return _written(x, src, shift, (*rest, s[dim1] + s[dim2]))
