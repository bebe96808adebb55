"""Joining and parting tensors: each piece is copied to its place."""

from __future__ import annotations

from ....core.layout import Layout, Spec
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders.copy import copy_view


def part(v: View, dim: int, start: int, size: int) -> View:
    """A piece along a dimension."""
    spec = v.spec
    shape = (*spec.shape[:dim], size, *spec.shape[dim + 1 :])
    return View(v.storage, v.offset + start * spec.strides[dim], spec.like(shape, strides=spec.strides))


def one(v: View, dim: int, at: int) -> View:
    """What lies at a place of a dimension, without it."""
    spec = v.spec
    layout = Layout((*spec.shape[:dim], *spec.shape[dim + 1 :]), (*spec.strides[:dim], *spec.strides[dim + 1 :]))
    return View(v.storage, v.offset + at * spec.strides[dim], Spec(layout, spec.dtype, spec.device))


@webgpu("cat", into=True, careful=True)
def cat(tensors: tuple[Slot, ...], dim: int) -> Run:
    def run(outs: list[View], tensors: list[View]) -> None:
        start = 0
        for x in tensors:
            if x.spec.shape != (0,):
                copy_view(part(outs[0], dim, start, x.spec.shape[dim]), x)
                start += x.spec.shape[dim]

    return run


@webgpu("stack", into=True, careful=True)
def stack(tensors: tuple[Slot, ...], dim: int) -> Run:
    def run(outs: list[View], tensors: list[View]) -> None:
        for i, x in enumerate(tensors):
            copy_view(one(outs[0], dim, i), x)

    return run


@webgpu("_split")
def split(x: Slot, sizes: tuple[int, ...], dim: int) -> Run:
    def run(outs: list[View], x: View) -> None:
        start = 0
        for out, size in zip(outs, sizes, strict=True):
            copy_view(out, part(x, dim, start, size))
            start += size

    return run


@webgpu("_unbind")
def unbind(x: Slot, dim: int) -> Run:
    def run(outs: list[View], x: View) -> None:
        for i, out in enumerate(outs):
            copy_view(out, one(x, dim, i))

    return run
