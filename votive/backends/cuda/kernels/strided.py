"""How often a window with overlaps leads to each place of a block."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.device import device
from ....core.layout import Layout, Spec, has_overlap
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.fill import fill_view
from ..programs.index_space import IndexSpace, added, window, word
from ..programs.program import TYPE, pointer
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty, zero


@cuda("_visits")
def visits(
    length: int, size: tuple[int, ...], stride: tuple[int, ...], offset: int, dtype: dt.dtype, device: device
) -> Run:
    if dtype not in TYPE:
        return None
    p = IndexSpace(size, [stride], reach=length)
    shift = p.arg("offset", offset)
    count = p.kernel(
        "visits",
        {"o": "*i32"},
        [
            f"at = {p.offsets[0] or '0'} + {shift} + r * 0 + n * 0",
            "tl.atomic_add(o + at, 1, mask=inside, sem='relaxed')",
        ],
    )
    flat = IndexSpace((length,), [(1,)])
    finish = flat.kernel(
        "visited",
        {"o": pointer(dtype), "x": "*i32"},
        [flat.store(f"tl.maximum({flat.load('x', 0)}, 1).to(o.dtype.element_ty)")],
    )
    counts = Spec(Layout((length,)), dt.int32, device)

    def run(outs: list[View]) -> None:
        made = empty(counts)
        zero(made)
        count(made.ptr)
        finish(outs[0].ptr, made.ptr)

    return run


def _added(x: Slot, stride: tuple[int, ...], offset: int) -> Any:
    """Windows that overlap add up."""
    from .index import SUMS, spot, summed

    if x.dtype not in SUMS:
        return None
    kind = SUMS[x.dtype]
    p = IndexSpace(x.shape, [stride, x.strides], order=1)
    types = {"o": pointer(kind), "x": pointer(x.dtype)}
    add = p.kernel("add_window", types, added(spot(p, 0), p.load("x", 1)))

    def run(outs: list[View], x: View) -> None:
        with summed(outs[0], None) as to:
            add(to.ptr + offset * kind.itemsize, x.ptr)

    return run


@cuda("_into_window")
def into_window(x: Slot, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Run:
    if word(x.dtype) is None:
        return None
    if has_overlap(x.shape, stride):
        return _added(x, stride, offset)

    def run(outs: list[View], x: View) -> None:
        fill_view(outs[0], 0)
        if x.spec.numel:
            copy_view(window(outs[0], x.spec.shape, stride, offset), x)

    return run
