"""Where the windows of a pool lie: sizes from kernels, strides and padding, checked. Knows no operators."""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any

from ..core.errors import fail
from ..core.layout import Shape
from ..core.remembered import symbolic
from .fold import check_not_negative, check_positive, per_dim

if TYPE_CHECKING:
    from .types import Ints, Tensor


def check_input(op: str, x: Tensor, n: int) -> None:
    """Raise unless `x` is (N, C, *n sizes) or (C, *n sizes), empty at most in its batch."""
    if x.ndim not in (n + 1, n + 2) or 0 in tuple(x.shape)[-n - 1 :]:
        fail(
            RuntimeError,
            op,
            f"input must have {n + 1} or {n + 2} dimensions, empty only in the batch, got shape {tuple(x.shape)}.",
        )


_geometries: dict[Any, tuple[Shape, ...]] = {}  # what calls came down to, by their arguments


def geometry(
    op: str, n: int, x: Tensor, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Shape, ...]:
    """(output size, kernel, stride, padding, dilation), checked."""
    given = (kernel, stride, padding, dilation)
    # Sizes that are expressions would be fixed by being a key.
    if symbolic.key is not None or any(v.__class__ not in (int, tuple, NoneType) for v in given):
        return _worked_out(op, n, x, *given, ceil_mode)
    key = (op, x._spec.shape, *given, bool(ceil_mode))
    found = _geometries.get(key)
    if found is None:
        found = _worked_out(op, n, x, *given, ceil_mode)
        if all(v.__class__ is int for part in given if part.__class__ is tuple for v in part):  # True is no size
            if len(_geometries) > 1024:
                _geometries.clear()
            _geometries[key] = found
    return found


def _worked_out(
    op: str, n: int, x: Tensor, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Shape, ...]:
    kernel = per_dim(op, "kernel_size", kernel, n)
    if stride is None or (hasattr(stride, "__len__") and len(stride) == 0):
        stride = kernel
    stride = per_dim(op, "stride", stride, n)
    padding, dilation = per_dim(op, "padding", padding, n), per_dim(op, "dilation", dilation, n)
    check_positive(op, "kernel_size", kernel)
    check_positive(op, "stride", stride)
    check_positive(op, "dilation", dilation)
    check_not_negative(op, "padding", padding)
    check_input(op, x, n)
    size = []
    for i, k, s, p, d in zip(tuple(x.shape)[-n:], kernel, stride, padding, dilation, strict=True):
        reach = d * (k - 1) + 1
        if p > k // 2:
            fail(RuntimeError, op, f"padding {p} is more than half the kernel's size {k}.")
        room = i + 2 * p - reach
        places = (room + (s - 1 if ceil_mode else 0)) // s + 1
        # A window that would start in the padding behind the end is left out.
        if ceil_mode and (places - 1) * s >= i + p:
            places -= 1
        if places < 1:
            fail(RuntimeError, op, f"a window of size {reach} does not fit into size {i} with padding {p}.")
        size.append(places)
    return tuple(size), kernel, stride, padding, dilation
