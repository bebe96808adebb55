"""Copies with one view replaced."""

from __future__ import annotations

from collections.abc import Callable

from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View, empty
from ..shaders.copy import copy_view
from .combine import one

Ints = tuple[int, ...]


def _replaced(part: Callable[[View], View]) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        out = outs[0]
        if src.storage is out.storage:
            near = empty(src.spec.like(src.spec.shape))
            copy_view(near, src)
            src = near
        if out.storage is not x.storage:
            copy_view(out, x)
        if src.spec.numel:
            copy_view(part(out), src)

    return run


@webgpu("select_scatter", into=True)
def select_scatter(x: Slot, src: Slot, dim: int, index: int) -> Run:
    return _replaced(lambda out: one(out, dim, index))


@webgpu("slice_scatter", into=True)
def slice_scatter(x: Slot, src: Slot, dim: int, start: int, end: int, step: int) -> Run:
    def part(out: View) -> View:
        spec = out.spec
        shape = (*spec.shape[:dim], max(-(-(end - start) // step), 0), *spec.shape[dim + 1 :])
        strides = (*spec.strides[:dim], spec.strides[dim] * step, *spec.strides[dim + 1 :])
        return View(out.storage, out.offset + start * spec.strides[dim], spec.like(shape, strides=strides))

    return _replaced(part)


@webgpu("diagonal_scatter", into=True)
def diagonal_scatter(x: Slot, src: Slot, offset: int, dim1: int, dim2: int) -> Run:
    def part(out: View) -> View:
        spec = out.spec
        a, b = spec.strides[dim1], spec.strides[dim2]
        start = offset * b if offset >= 0 else -offset * a
        kept = [d for d in range(spec.ndim) if d not in (dim1, dim2)]
        size = src.shape[-1]
        layout = Layout((*[spec.shape[d] for d in kept], size), (*[spec.strides[d] for d in kept], a + b))
        return View(out.storage, out.offset + start, Spec(layout, spec.dtype, spec.device))

    return _replaced(part)
