"""Matrix products, batched and broadcast, of any layouts; linear layers."""

from __future__ import annotations

import math

from ....core import dtype as dt
from ....core.layout import Layout, Spec, broadcast_shapes, broadcast_strides
from ...common.slot import Slot
from ..rows import Run, webgpu
from ..runtime.views import View
from ..shaders import types
from ..shaders.layouts import contiguous, reshaped
from ..shaders.matmul import Product, Side
from ..shaders.rows import Target

# More matrices than a grid has places in its third dimension.
_MOST = 65535


def as_matrices(a: Spec, b: Spec) -> tuple[Spec, Spec]:
    """Vectors as a row or a column."""
    if a.ndim == 1:
        a = a.like((1, *a.shape), strides=(a.numel * a.strides[0], *a.strides))
    if b.ndim == 1:
        b = b.like((*b.shape, 1), strides=(*b.strides, 1))
    return a, b


def product_of(name: str, a: Spec, b: Spec, out: dt.dtype) -> Product | None:
    """The product of two tensors into row-major memory; None where kernels have none."""
    if not types.floats(a, b) or a.dtype is not b.dtype:
        return None
    x, y = as_matrices(a, b)
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if y.ndim == 2 and x.ndim > 2 and x.contiguous:  # a batch times one matrix is one large product
        m, x = math.prod(x.shape[:-1]), Spec(Layout((math.prod(x.shape[:-1]), k)), x.dtype, x.device)
    batch = broadcast_shapes(name, x.shape[:-2], y.shape[:-2])
    if math.prod(batch) > _MOST:
        return None
    left = Side.of(x, broadcast_strides(x.shape[:-2], x.strides[:-2], batch))
    right = Side.of(y, broadcast_strides(y.shape[:-2], y.strides[:-2], batch))
    whole = Spec(Layout((*batch, m, n)), out, x.device)
    return Product(name, batch, (m, n, k), left, right, Side.of(whole, whole.strides[:-2]))


@webgpu("matmul")
def matmul(a: Slot, b: Slot) -> Run:
    product = product_of("matmul", a.spec, b.spec, a.dtype)
    if product is None:
        return None

    def run(outs: list[View], a: View, b: View) -> None:
        to = Target(outs[0])
        product([to.view, a, b])
        to.done()

    return run


@webgpu("linear")
def linear(x: Slot, weight: Slot, bias: Slot | None) -> Run:
    return ending("linear", x, weight, bias, "v", "")


def ending(name: str, x: Slot, weight: Slot, bias: Slot | None, epilogue: str, head: str) -> Run:
    """A linear layer that ends in an expression of `v`."""
    if not types.floats(x, weight) or x.dtype is not weight.dtype or weight.ndim > 2:
        return None
    k = x.shape[-1]
    m = math.prod(x.shape[:-1])
    n = weight.shape[0] if weight.ndim == 2 else 1
    w = weight.spec
    right = Side(w.dtype, w.strides[-1], w.strides[0] if w.ndim == 2 else 1, ())
    flat = x.contiguous or x.ndim <= 2
    if x.ndim == 2:
        left = Side.of(x.spec)
    elif x.ndim == 1:
        left = Side(x.dtype, k * x.strides[0], x.strides[0], ())
    else:
        left = Side(x.dtype, k, 1, ())
    more = []
    if bias is not None:
        if bias.dtype not in types.FLOATS or bias.ndim > 1:
            return None
        more = [("bias", bias.dtype)]
        at = "n * P.bn" if bias.ndim else "0u"
        epilogue = epilogue.replace("v", f"(v + bias_at({at}))", 1) if epilogue == "v" else epilogue
        head = head.replace("SUM", f"v + bias_at({at})")
    head = head.replace("SUM", "v")
    numbers = [("bn", "I")] if bias is not None else []
    given = [bias.strides[0] if bias.ndim else 0] if bias is not None else []
    out = Side(x.dtype, n, 1, ())
    product = Product(name, (), (m, n, k), left, right, out, epilogue=epilogue, more=more, head=head, numbers=numbers)

    def run(outs: list[View], x: View, weight: View, bias: View | None) -> None:
        to = Target(outs[0])
        if not flat:
            x = reshaped(contiguous(x), (m, k))
        product([to.view, x, weight, *([] if bias is None else [bias])], *given)
        to.done()

    return run
