"""Kernels of size 1: a convolution of single pixels is a product of matrices, by cuBLASLt."""

from __future__ import annotations

import math
from collections.abc import Callable

from .....core import dtype as dt
from .....core.layout import Spec, channels_last_strides, contiguous_strides
from ....common.slot import Slot
from ...libraries import cublas
from ...programs.layouts import contiguous
from ...programs.types import Ints
from ...runtime.views import View
from ..matmul.kernels import Side
from ..matmul.plan import Library
from .bias import BiasAdder
from .implicit import Convolve, Weigh


def _lies(x: Spec | Slot, last: bool) -> bool:
    """Whether a tensor is dense, with its channels last or in front of its places."""
    wanted = channels_last_strides(x.shape) if last and x.ndim > 3 else contiguous_strides(x.shape)
    if last and x.ndim == 3:
        return False
    return all(n == 1 or a == b for n, a, b in zip(x.shape, x.strides, wanted, strict=True))


def _single(kernel: Ints, stride: Ints, padding: Ints, groups: int) -> bool:
    return groups == 1 and max(kernel) == 1 and max(stride) == 1 and max(padding) == 0 and cublas.library.load()


def pixels(p: Convolve, out: Spec) -> Callable[..., None] | None:
    """`run(out, x, weight, bias)`, or None."""
    x, w = p.x, p.weight
    if not _single(w.shape[2:], p.stride, p.padding, p.groups) or x.shape[2:] != out.shape[2:]:
        return None
    last = out.strides[1] == 1 and out.shape[1] > 1
    if not (_lies(x, last) and _lies(out, last)):
        return None
    n, channels, columns, places = x.shape[0], x.shape[1], out.shape[1], math.prod(p.size)
    # The weight as (terms, columns): rows and columns of w change places in a transpose.
    row, col = (w.shape[1], 1) if p.transposed else (1, w.shape[1])
    kind: dt.dtype = x.dtype
    add = None
    if last:
        rows = n * places
        product = Library(
            Side(kind, rows, channels, channels, 1, 0),
            Side(kind, channels, columns, row, col, 0),
            Side(kind, rows, columns, columns, 1, 0),
            bias=kind if p.bias else None,
            epilogue=cublas.BIAS if p.bias else cublas.PLAIN,
        )
    else:
        product = Library(
            Side(kind, columns, channels, col, row, 0),
            Side(kind, channels, places, places, 1, channels * places),
            Side(kind, columns, places, places, 1, columns * places),
            n,
        )
        add = BiasAdder(out) if p.bias else None

    def run(out: View, x: View, w: View, bias: View | None) -> None:
        w = contiguous(w)
        if last:
            product(x.ptr, w.ptr, out.ptr, **({} if bias is None else {"bias": bias.ptr}))
            return
        product(w.ptr, x.ptr, out.ptr)
        if add is not None and bias is not None:
            add(out, bias)

    run.__name__ = "product"
    return run


def weight_of_pixels(p: Weigh, out: Spec) -> Callable[..., None] | None:
    """`run(out, x, grad)`, or None: sums over all positions, which lie in a row."""
    x, y = p.x, p.grad
    if not _single(p.kernel, p.stride, p.padding, p.groups) or x.shape[2:] != y.shape[2:] or not out.contiguous:
        return None
    last = _lies(x, True) and _lies(y, True)
    if not last and not (x.shape[0] == 1 and _lies(x, False) and _lies(y, False)):
        return None
    positions, channels, rows = x.numel // x.shape[1], x.shape[1], y.shape[1]
    kind = x.dtype
    left = Side(kind, rows, positions, 1, rows, 0) if last else Side(kind, rows, positions, positions, 1, 0)
    right = Side(kind, positions, channels, *((channels, 1) if last else (1, positions)), 0)
    product = Library(left, right, Side(kind, rows, channels, channels, 1, 0))

    def run(out: View, x: View, y: View) -> None:
        product(y.ptr, x.ptr, out.ptr)

    run.__name__ = "product"
    return run
