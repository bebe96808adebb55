"""Products of the backward pass with a second result. The library sums rows and applies slopes
while it multiplies; where that is slower for a shape, a pass over memory does it.
"""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ...common.slot import Slot
from ..libraries import cublas
from ..programs.layouts import contiguous
from ..programs.types import Run
from ..rows import cuda
from ..runtime.autotune import Autotuned
from ..runtime.views import View, empty, zero
from . import reduction
from .matmul.epilogue import Slope
from .matmul.kernels import Side
from .matmul.plan import Library, Planned, transposed, unit
from .matmul.products import takes
from .matmul.tiles import Tiles, tiles


def side(spec: Spec) -> Side:
    """A matrix as an operand."""
    (rows, cols), (row, col) = spec.shape, spec.strides
    return Side(spec.dtype, rows, cols, row, col, 0)


def library(a: Spec, b: Spec, out: Spec, **options: Any) -> Library | None:
    """The library's product of two matrices, when it can read them and ends products so."""
    if not cublas.library.load() or not (unit(side(a)) and unit(side(b))):
        return None
    if not (a.numel and b.numel):
        return None
    made = Library(side(a), side(b), side(out), **options)
    return made if made.product.works() else None


@cuda("_linear_gradients", accepts=takes)
def linear_gradients(grad: Slot, x: Slot, swapped: bool) -> Run:
    if not grad.numel:
        return _zeros
    if not x.numel:  # no weights, but biases
        sums: Any = reduction.sum_(Slot(0, grad.spec), (0,), False, grad.dtype)
        return lambda outs, grad, x: sums([outs[1]], grad)
    g, right = grad.spec, x.spec
    # The weight's gradient lies in memory by rows or by columns: one or the other comes first.
    left, right = (transposed(right), g) if swapped else (transposed(g), right)
    out = g.like((left.shape[0], right.shape[1]))
    apart = _Apart(left, right, out, grad, swapped)
    epilogue = cublas.SUMS_LEFT if swapped else cublas.SUMS_RIGHT
    fused = library(left, right, out, epilogue=epilogue, bias=g.dtype)
    candidates: list[Any] = [apart]
    if fused is not None:

        def at_once(outs: list[View], grad: View, x: View) -> None:
            a, b = (x, grad) if swapped else (grad, x)
            fused(a.ptr, b.ptr, outs[0].ptr, bias=outs[1].ptr)

        candidates.insert(0, at_once)
    return Autotuned(candidates, apart.plan.work)


class _Apart:
    """A product, and a sum beside it."""

    def __init__(self, left: Spec, right: Spec, out: Spec, grad: Slot, swapped: bool) -> None:
        self.left, self.right, self.out, self.swapped = left, right, out, swapped
        self.plan = Planned(left, right, out)
        self.sums: Any = reduction.sum_(Slot(0, grad.spec), (0,), False, grad.dtype)

    def __call__(self, outs: list[View], grad: View, x: View) -> None:
        a, b = (x, grad) if self.swapped else (grad, x)
        to = View(outs[0].ptr, self.out, outs[0].storage)
        self.plan(to, View(a.ptr, self.left, a.storage), View(b.ptr, self.right, b.storage))
        self.sums([outs[1]], grad)


def _zeros(outs: list[View], *given: Any) -> None:
    for out in outs:
        if out.spec.numel:
            zero(out)


@cuda("_linear_slope", accepts=takes)
def linear_slope(grad: Slot, weight: Slot, kept: Slot, activation: str) -> Run:
    if not grad.shape[0] or not kept.numel:
        return _zeros
    out = kept.spec.like(kept.shape)
    rows, cols = out.shape
    plan = Planned(grad.spec, weight.spec, out)
    back = Slope(out, rows, cols, activation)

    def apart(outs: list[View], grad: View, weight: View, kept: View) -> None:
        product, kept = empty(out), contiguous(kept)
        plan(product, grad, weight)
        back(outs[0].ptr, outs[1].ptr, product.ptr, kept.ptr)

    candidates: list[Any] = [apart]
    if activation == "gelu_tanh" and kept.dtype in dt.HALF and kept.contiguous:
        specs = grad.spec, weight.spec, out
        sums: Any = reduction.sum_(Slot(0, out), (0,), False, out.dtype)
        half = library(*specs, epilogue=cublas.GELU_GRADIENT, aux=cols)
        fused = library(*specs, epilogue=cublas.GELU_GRADIENT_SUMS, bias=out.dtype, aux=cols)

        def sloped(outs: list[View], grad: View, weight: View, kept: View) -> None:
            half(grad.ptr, weight.ptr, outs[0].ptr, aux=kept.ptr)  # type: ignore[misc]
            sums([outs[1]], outs[0])

        def at_once(outs: list[View], grad: View, weight: View, kept: View) -> None:
            fused(  # type: ignore[misc]
                grad.ptr, weight.ptr, outs[0].ptr, aux=kept.ptr, bias=outs[1].ptr
            )

        candidates = [*([at_once] if fused else ()), *([sloped] if half else ()), apart]
    if kept.contiguous:
        for tile in tiles(grad.spec, weight.spec):
            candidates.append(_passing(Tiles(grad.spec, weight.spec, tile, activation, back=True)))
    return Autotuned(candidates, plan.work)


def _passing(product: Tiles) -> Any:
    def by_tiles(outs: list[View], grad: View, weight: View, kept: View) -> None:
        product.back(outs[0].ptr, outs[1].ptr, kept.ptr, grad.ptr, weight.ptr)

    return by_tiles
