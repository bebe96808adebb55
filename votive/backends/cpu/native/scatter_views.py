"""Copies with one view replaced, on native kernels."""

from __future__ import annotations

from ....core.layout import Spec, has_overlap
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import known
from .rows import OUT, native


def _written(x: Slot, src: Slot, shift: int, steps: Ints) -> Args:
    item = x.dtype.itemsize
    return OUT, x, src, shift * item, *[s * item for s in steps]


def _strides(x: Slot) -> Ints:
    """Those of the result."""
    out: Spec = x.spec.dense_like()
    return out.strides


@native("select_scatter", "write_window", accepts=known)
def select_scatter(x: Slot, src: Slot, dim: int, index: int) -> Args:
    s = _strides(x)
    return _written(x, src, index * s[dim], s[:dim] + s[dim + 1 :])


@native("slice_scatter", "write_window", accepts=known)
def slice_scatter(x: Slot, src: Slot, dim: int, start: int, end: int, step: int) -> Args:
    s = _strides(x)
    return _written(x, src, start * s[dim], (*s[:dim], s[dim] * step, *s[dim + 1 :]))


@native("diagonal_scatter", "write_window", accepts=known)
def diagonal_scatter(x: Slot, src: Slot, offset: int, dim1: int, dim2: int) -> Args:
    s = _strides(x)
    shift = offset * s[dim2] if offset >= 0 else -offset * s[dim1]
    rest = [s[d] for d in range(x.ndim) if d not in (dim1, dim2)]
    return _written(x, src, shift, (*rest, s[dim1] + s[dim2]))


@native("_write_window", "write_window", accepts=known)
def write_window(x: Slot, src: Slot, stride: Ints, offset: int) -> Args:
    if has_overlap(src.shape, stride):
        return None
    item = x.dtype.itemsize
    return OUT, x, src, offset * item, *[s * item for s in stride]
