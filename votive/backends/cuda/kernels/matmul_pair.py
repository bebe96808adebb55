"""Two linear layers with an activation between them: the first product stores what the activation
gets and what it gives, at once or in a pass of its own, whichever is faster.
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
from ..runtime.views import View
from .matmul.epilogue import Activation
from .matmul.plan import Activated, Planned, rows_of, transposed
from .matmul.products import is_row, takes
from .matmul.tiles import Tiles, tiles
from .matmul_gradient import library


@cuda("_feed_forward", accepts=takes)
def feed_forward(x: Slot, w1: Slot, b1: Slot | None, w2: Slot, b2: Slot | None, activation: str) -> Run:
    if w1.ndim != 2 or w2.ndim != 2 or not x.dtype.is_floating_point:
        return None
    if not is_row(b1, w1.shape[0]) or not is_row(b2, w2.shape[0]) or not w1.numel or not w2.numel:
        return None
    first, second = transposed(w1.spec), transposed(w2.spec)
    hidden = x.spec.like((*x.shape[:-1], w1.shape[0]))
    inner = _first(x.spec, first, hidden, None if b1 is None else b1.dtype, activation)
    outer = Planned(hidden, second, hidden, None if b2 is None else b2.dtype)

    def run(outs: list[View], x: View, w1: View, b1: View | None, w2: View, b2: View | None) -> None:
        y, before, after = outs
        b1, b2 = (None if b is None else contiguous(b) for b in (b1, b2))
        inner(before, after, x, View(w1.ptr, first, w1.storage), 0 if b1 is None else b1.ptr)
        right = View(w2.ptr, second, w2.storage)
        outer(y, after, right, bias=0 if b2 is None else b2.ptr)

    return run


def _first(x: Spec, w: Spec, hidden: Spec, bias: dt.dtype | None, activation: str) -> Any:
    """(before, after, x, weight, bias's address) -> nothing; fills the first two."""
    if activation == "relu":
        fused = Activated(x, w, hidden, bias, activation)
        return lambda before, after, x, w, at: fused(after, x, w, bias=at)
    plan = Planned(x, w, hidden, bias)
    pass_ = Activation(hidden.dtype, hidden.numel, activation)

    def apart(before: View, after: View, x: View, w: View, at: int) -> None:
        plan(before, x, w, bias=at)
        pass_(after.ptr, before.ptr)

    candidates: list[Any] = [apart]
    rows = rows_of(x)
    if rows is not None:
        for tile in tiles(rows, w):
            candidates.append(_passing(Tiles(rows, w, tile, activation, back=False, bias=bias)))
    if activation == "gelu_tanh" and hidden.dtype in dt.HALF and rows is not None:
        cols = hidden.shape[-1]
        product = library(
            rows,
            w,
            hidden.like((rows.shape[0], cols)),
            bias=bias,
            aux=cols,
            epilogue=cublas.GELU_AUX if bias is None else cublas.GELU_AUX_BIAS,
        )
        if product is not None:

            def at_once(before: View, after: View, x: View, w: View, at: int) -> None:
                product(x.ptr, w.ptr, after.ptr, bias=at, aux=before.ptr)

            candidates.insert(0, at_once)
    return Autotuned(candidates, plan.work)


def _passing(product: Tiles) -> Any:
    def by_tiles(before: View, after: View, x: View, w: View, at: int) -> None:
        product.forward(after.ptr, before.ptr, x.ptr, w.ptr, at)

    return by_tiles
