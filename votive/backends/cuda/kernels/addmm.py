"""Products added to an input: the library adds while it stores."""

from __future__ import annotations

from typing import Any

from ....core.layout import Spec
from ...common.slot import Slot
from ..programs.copy import copy_view
from ..programs.layouts import contiguous
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View, empty
from .matmul.plan import Planned, stretched
from .matmul.products import is_row, takes


def started(x: View, out: View, beta: float) -> None:
    """Put what `beta` multiplies where the result goes; with 0 it does not count at all."""
    if beta:
        copy_view(out, stretched(x, out.spec))


def _factor(value: Any, spec: Spec) -> Any:
    return float(value) if spec.dtype.is_floating_point else int(value)


@cuda("_addmm", accepts=takes)
def addmm(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot) -> Run:
    plan = Planned(a.spec, b.spec, a.spec, add=True)
    # A row that is added as it is is a bias.
    row = a.ndim > 1 and b.ndim > 1 and x.ndim == 1 and is_row(x, b.shape[-1])
    biased = Planned(a.spec, b.spec, a.spec, x.dtype) if row else None

    def run(outs: list[View], x: View, a: View, b: View, beta: Any, alpha: Any) -> None:
        out = outs[0]
        if biased is not None and beta == 1 and alpha == 1:
            x = contiguous(x)
            biased(out, a, b, bias=x.ptr)
            return
        beta, alpha = _factor(beta, out.spec), _factor(alpha, out.spec)
        started(x, out, beta)
        plan(out, a, b, add=out.ptr, alpha=alpha, beta=beta)

    return run


@cuda("_addbmm")
def addbmm(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot) -> Run:
    """The sum over the batch is a product of longer matrices: (rows, batch x inner) by (batch x
    inner, columns).
    """
    from .complex import products as complex_products

    count, rows, inner = a.shape
    beside = a.spec.like((rows, count, inner), strides=(a.strides[1], a.strides[0], a.strides[2]))
    left = a.spec.like((rows, count * inner))
    right = b.spec.like((count * inner, b.shape[2]))
    of = complex_products.addmm if a.dtype.is_complex else addmm
    product = of(x, Slot(0, left), Slot(0, right), beta, alpha)
    if product is None:
        return None

    def run(outs: list[View], x: View, a: View, b: View, beta: Any, alpha: Any) -> None:
        line = empty(beside.like(beside.shape))
        copy_view(line, View(a.ptr, beside, a.storage))
        b = contiguous(b)
        given = View(line.ptr, left, line.storage), View(b.ptr, right, b.storage)
        product(outs, x, *given, beta, alpha)

    return run
