"""Copies with one view replaced."""

from __future__ import annotations

from ....core.layout import has_overlap
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import window
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from ..runtime.views import empty as new


def start(out: View, x: View) -> None:
    """Begin with the input's values; in place they are there already."""
    if out.ptr != x.ptr or out.spec is not x.spec:
        copy_view(out, x)


def apart(v: View, out: View) -> View:
    """`v`, copied when writing to `out` could change it."""
    if v.storage is not out.storage:
        return v
    made = new(v.spec.dense_like())
    copy_view(made, v)
    return made


def _replaced(outs: list[View], x: View, src: View, to: View) -> None:
    src = apart(src, outs[0])
    start(outs[0], x)
    copy_view(to, src)


@cuda("select_scatter", into=True)
def select_scatter(x: Slot, src: Slot, dim: int, index: int) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        spec = outs[0].spec
        shape = (*spec.shape[:dim], *spec.shape[dim + 1 :])
        s = (*spec.strides[:dim], *spec.strides[dim + 1 :])
        _replaced(outs, x, src, window(outs[0], shape, s, index * spec.strides[dim]))

    return run


@cuda("slice_scatter", into=True)
def slice_scatter(x: Slot, src: Slot, dim: int, start: int, end: int, step: int) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        s = outs[0].spec.strides
        strides = (*s[:dim], s[dim] * step, *s[dim + 1 :])
        _replaced(outs, x, src, window(outs[0], src.spec.shape, strides, start * s[dim]))

    return run


@cuda("diagonal_scatter", into=True)
def diagonal_scatter(x: Slot, src: Slot, offset: int, dim1: int, dim2: int) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        s = outs[0].spec.strides
        shift = offset * s[dim2] if offset >= 0 else -offset * s[dim1]
        rest = [s[d] for d in range(len(s)) if d not in (dim1, dim2)]
        to = window(outs[0], src.spec.shape, (*rest, s[dim1] + s[dim2]), shift)
        _replaced(outs, x, src, to)

    return run


@cuda("_write_window")
def write_window(x: Slot, src: Slot, stride: tuple[int, ...], offset: int) -> Run:
    if has_overlap(src.shape, stride):
        return None

    def run(outs: list[View], x: View, src: View) -> None:
        copy_view(outs[0], x)
        copy_view(window(outs[0], src.spec.shape, stride, offset), src)

    return run
