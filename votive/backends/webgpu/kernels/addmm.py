"""Products added to an input."""

from __future__ import annotations

from typing import Any

from ....core.layout import Layout, Spec, broadcast_shapes, broadcast_strides
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import strides_as
from ..shaders.matmul import Product, Side
from ..shaders.rows import Target
from .matmul import as_matrices
from .matmul_activation import ACTIVATIONS, rounded


@webgpu("_addmm")
def addmm(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot) -> Run:
    return ending("addmm", x, a, b, SUM)


# With beta 0 the input does not count at all, not even its NaNs.
SUM = "select(v * P.alpha, v * P.alpha + x_at(z_x(z) + m * P.xm + n * P.xn) * P.beta, P.beta != 0.0)"


def ending(name: str, x: Slot, a: Slot, b: Slot, epilogue: str, head: str = "") -> Run:
    """A product of matrices that ends in an expression of `v` and the input `x`."""
    if not types.floats(x, a, b):
        return None
    left, right = as_matrices(a.spec, b.spec)
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    batch = broadcast_shapes(name, left.shape[:-2], right.shape[:-2])
    whole = Spec(Layout((*batch, m, n)), a.dtype, a.spec.device)
    # The input as the result's matrices, of which vectors are a row or a column.
    result = (*batch, *([m] if a.ndim > 1 else []), *([n] if b.ndim > 1 else []))
    steps = list(strides_as(x.spec, result))
    xn = steps.pop() if b.ndim > 1 else 0
    xm = steps.pop() if a.ndim > 1 else 0
    product = Product(
        name,
        batch,
        (m, n, k),
        Side.of(left, broadcast_strides(left.shape[:-2], left.strides[:-2], batch)),
        Side.of(right, broadcast_strides(right.shape[:-2], right.strides[:-2], batch)),
        Side.of(whole, whole.strides[:-2]),
        epilogue=epilogue,
        more=[("x", x.dtype)],
        head=head,
        numbers=[("xm", "I"), ("xn", "I"), ("alpha", "f"), ("beta", "f")],
        beside=tuple(steps),
    )

    def run(outs: list[View], x: View, a: View, b: View, beta: Any, alpha: Any) -> None:
        to = Target(outs[0])
        product([to.view, a, b, x], xm, xn, float(alpha), float(beta))
        to.done()

    return run


@webgpu("_addmm_activated")
def addmm_activated(x: Slot, a: Slot, b: Slot, beta: Slot, alpha: Slot, activation: str) -> Run:
    text = ACTIVATIONS.get(activation)
    if text is None:
        return None
    head = f"fn activated(v: f32) -> f32 {{ let u = {rounded('v', a.dtype)}; return {text}; }}\n"
    return ending("addmm_activated", x, a, b, f"activated({SUM})", head)
