"""Joining tensors, and copies of their pieces: each piece is copied to or from its window."""

from __future__ import annotations

from typing import Any

from .copy import copy_view
from .data import View
from .places import window
from .rows import cuda


def _pieces(whole: View, sizes: list[int], dim: int, gone: bool) -> list[View]:
    """Windows of these sizes side by side along a dimension; `gone`: without that dimension."""
    spec, out, at = whole.spec, [], 0
    step = spec.strides[dim]
    for n in sizes:
        if gone:
            shape = (*spec.shape[:dim], *spec.shape[dim + 1 :])
            strides = (*spec.strides[:dim], *spec.strides[dim + 1 :])
        else:
            shape, strides = (*spec.shape[:dim], n, *spec.shape[dim + 1 :]), spec.strides
        out.append(window(whole, shape, strides, at * step))
        at += n
    return out


@cuda("cat")
def cat(tensors: Any, dim: int) -> Any:
    # An empty vector joins anything.
    real = [t.numel > 0 for t in tensors]
    sizes = [t.shape[dim] for t, r in zip(tensors, real, strict=True) if r]

    def run(outs: list[View], tensors: list[View]) -> None:
        parts = [t for t, r in zip(tensors, real, strict=True) if r]
        for to, source in zip(_pieces(outs[0], sizes, dim, False), parts, strict=True):
            copy_view(to, source)

    return run


@cuda("stack")
def stack(tensors: Any, dim: int) -> Any:
    def run(outs: list[View], tensors: list[View]) -> None:
        for to, source in zip(
            _pieces(outs[0], [1] * len(tensors), dim, True), tensors, strict=True
        ):
            copy_view(to, source)

    return run


@cuda("_split")
def split(x: Any, sizes: Any, dim: int) -> Any:
    def run(outs: list[View], x: View) -> None:
        for to, source in zip(outs, _pieces(x, list(sizes), dim, False), strict=True):
            copy_view(to, source)

    return run


@cuda("_unbind")
def unbind(x: Any, dim: int) -> Any:
    def run(outs: list[View], x: View) -> None:
        for to, source in zip(outs, _pieces(x, [1] * x.spec.shape[dim], dim, True), strict=True):
            copy_view(to, source)

    return run
