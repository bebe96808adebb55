"""Gradients of windows on memory, and writing through them."""

from __future__ import annotations

import math

from ....core.layout import Layout, Spec, has_overlap
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders.copy import copy_view
from ..shaders.rows import Target
from .fill import fill_view

Ints = tuple[int, ...]


def window(v: View, shape: Ints, strides: Ints, offset: int) -> View:
    """A window on row-major memory."""
    return View(v.storage, v.offset + offset, Spec(Layout(shape, strides), v.spec.dtype, v.spec.device))


@webgpu("_into_window")
def into_window(x: Slot, size: Ints, stride: Ints, offset: int) -> Run:
    if has_overlap(x.shape, stride):
        return None
    whole = math.prod(size) == x.numel

    def run(outs: list[View], x: View) -> None:
        to = Target(outs[0])
        if not whole:
            fill_view(to.view, 0)
        if x.spec.numel:
            copy_view(window(to.view, x.spec.shape, stride, offset), x)
        to.done()

    return run


@webgpu("_write_window")
def write_window(x: Slot, src: Slot, stride: Ints, offset: int) -> Run:
    if has_overlap(src.shape, stride):
        return None

    def run(outs: list[View], x: View, src: View) -> None:
        to = Target(outs[0])
        copy_view(to.view, x)
        if src.spec.numel:
            copy_view(window(to.view, src.spec.shape, stride, offset), src)
        to.done()

    return run
