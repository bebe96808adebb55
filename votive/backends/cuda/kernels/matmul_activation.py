"""Products that end in an activation: the library's epilogue where it has one and is faster so, a
pass over the result else.
"""

from __future__ import annotations

from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.layouts import contiguous
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .addmm import started
from .matmul.plan import Activated, transposed
from .matmul.products import is_row, takes


@cuda("_linear_activated", accepts=takes)
def linear_activated(x: Slot, weight: Slot, bias: Slot | None, activation: str) -> Run:
    if weight.ndim != 2 or not is_row(bias, weight.shape[0]):
        return None
    right = transposed(weight.spec)
    plan = Activated(x.spec, right, _out(x, right), None if bias is None else bias.dtype, activation)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        bias = None if bias is None else contiguous(bias)
        w = View(weight.ptr, right, weight.storage)
        plan(outs[0], x, w, bias=0 if bias is None else bias.ptr)

    return run


def _out(x: Slot, right: Spec) -> Any:
    """The spec of the product of a tensor's last dimension and a matrix."""
    return x.spec.like((*x.shape[:-1], right.shape[1]))


@cuda("_addmm_activated", accepts=takes)
def addmm_activated(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot, activation: str) -> Run:
    if a.ndim != 2 or b.ndim != 2:
        return None
    out = a.spec.like((a.shape[0], b.shape[1]))
    plan = Activated(a.spec, b.spec, out, None, activation, add=True)
    row = x.ndim == 1 and is_row(x, b.shape[1])
    biased = Activated(a.spec, b.spec, out, x.dtype, activation) if row else None

    def run(outs: list[View], x: View, a: View, b: View, beta: Any, alpha: Any) -> None:
        if biased is not None and beta == 1 and alpha == 1:
            x = contiguous(x)
            biased(outs[0], a, b, bias=x.ptr)
            return
        started(x, outs[0], beta)
        plan(outs[0], a, b, add=outs[0].ptr, alpha=alpha, beta=beta)

    return run
