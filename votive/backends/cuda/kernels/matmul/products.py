"""Matrix products: cuBLASLt for most, an own kernel for a few rows (decoding runs at the speed of
memory), a plain Triton kernel where the library is missing.
"""

from __future__ import annotations

from typing import Any

from .....core import dtype as dt
from .....core.layout import Spec
from ....common.slot import Slot
from ...programs.copy import copy_view
from ...programs.layouts import contiguous
from ...programs.program import TYPE
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View, zero
from .plan import Planned, stretched, transposed

__all__ = ["takes"]


def takes(*specs: Spec) -> bool:
    """Whether all are of one type of numbers that kernels have; complex ones they have not."""
    kind = specs[0].dtype
    known = kind in TYPE and kind is not dt.bool_ and kind not in dt.FLOAT8
    return known and all(s.dtype is kind for s in specs)


@cuda("matmul", accepts=takes)
def matmul(a: Slot, b: Slot) -> Run:
    if not a.numel or not b.numel:
        return lambda outs, a, b: zero(outs[0])
    plan = Planned(a.spec, b.spec, a.spec)
    return lambda outs, a, b: plan(outs[0], a, b)


def is_row(bias: Slot | None, features: int) -> bool:
    """Whether what is added is one row, or nothing: what products add while they store."""
    return bias is None or (bias.ndim == 1 and bias.shape[0] == features)


@cuda("linear", accepts=takes)
def linear(x: Slot, weight: Slot, bias: Slot | None) -> Run:
    if weight.ndim != 2 or not is_row(bias, weight.shape[0]):
        return _added(x, weight, bias)
    if not x.numel or not weight.numel:
        return _nothing
    right = transposed(weight.spec)
    plan = Planned(x.spec, right, x.spec, None if bias is None else bias.dtype)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        bias = None if bias is None else contiguous(bias)
        plan(outs[0], x, View(weight.ptr, right, weight.storage), bias=0 if bias is None else bias.ptr)

    return run


def _nothing(outs: list[View], x: View, weight: View, bias: View | None) -> None:
    """Sums of nothing."""
    if bias is not None:
        copy_view(outs[0], stretched(bias, outs[0].spec))
    else:
        zero(outs[0])


def _added(x: Slot, weight: Slot, bias: Any) -> Any:
    """A weight that is a vector, or a bias of any shape that broadcasts."""
    right = transposed(weight.spec)
    if not x.numel or not weight.numel:
        return _nothing
    plan = Planned(x.spec, right, x.spec, add=bias is not None)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        out, w = outs[0], View(weight.ptr, right, weight.storage)
        if bias is None:
            plan(out, x, w)
            return
        copy_view(out, stretched(bias, out.spec))
        plan(out, x, w, add=out.ptr, alpha=1.0, beta=1.0)

    return run
