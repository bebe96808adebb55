"""Copies of the pieces of a tensor."""

from __future__ import annotations

from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.index_space import pieces
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View


@cuda("_split")
def split(x: Slot, sizes: tuple[int, ...], dim: int) -> Run:
    def run(outs: list[View], x: View) -> None:
        for to, source in zip(outs, pieces(x, list(sizes), dim, False), strict=True):
            copy_view(to, source)

    return run


@cuda("_unbind")
def unbind(x: Slot, dim: int) -> Run:
    def run(outs: list[View], x: View) -> None:
        for to, source in zip(outs, pieces(x, [1] * x.spec.shape[dim], dim, True), strict=True):
            copy_view(to, source)

    return run
