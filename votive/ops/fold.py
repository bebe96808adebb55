"""Sliding windows: their geometry, and unfold and fold, which lay them out and add them up.

Knows shapes and gradients, not how windows are read. Convolution and pooling share the geometry.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Shape, Spec, channels_last_strides, is_channels_last
from .registry import F, composite, structured
from .sizes import ints

if TYPE_CHECKING:
    from .types import Ints, Sequence, Tensor

NN = ("nn.functional",)


def per_dim(op: str, name: str, value: Ints, n: int) -> Shape:
    """One integer for each of n dimensions; a single one serves all."""
    given = ints(op, name, value)
    if len(given) == 1:
        return given * n
    if len(given) != n:
        fail(RuntimeError, op, f"{name} must be one integer or {n} of them, got {given}.")
    return given


def check_positive(op: str, name: str, values: Shape) -> None:
    """Raise unless every value is at least 1."""
    if any(v <= 0 for v in values):
        fail(RuntimeError, op, f"{name} must be positive, got {values}.")


def check_not_negative(op: str, name: str, values: Shape) -> None:
    """Raise when a value is below 0."""
    if any(v < 0 for v in values):
        fail(RuntimeError, op, f"{name} must not be negative, got {values}.")


def count(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """How many windows fit into a padded dimension; below 1 when none does."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def counts(size: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Shape:
    """`count` for each dimension."""
    return tuple(map(count, size, kernel, stride, padding, dilation))


def like_input(x: Spec, shape: Shape, *others: Spec) -> Spec:
    """A result in the memory order of `x`: channels last if it, or one of `others`, is so."""
    if len(shape) in (4, 5):
        for s in (x, *others):
            if s.ndim == len(shape) and not s.contiguous and is_channels_last(s.shape, s.strides):
                return x.like(shape, strides=channels_last_strides(shape))
    return x.like(shape)


def batched(op: str, x: Tensor, n: int) -> tuple[Any, bool]:
    """`x` with a batch dimension before the channels, and whether one had to be added."""
    if x.ndim not in (n + 1, n + 2):
        fail(
            RuntimeError,
            op,
            f"input must have {n + 2} dimensions, or {n + 1} without a batch, got shape {tuple(x.shape)}.",
        )
    return (x, False) if x.ndim == n + 2 else (x.unsqueeze(0), True)


def _infer_unfold(x: Spec, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Spec:
    places = counts(x.shape[2:], kernel, stride, padding, dilation)
    if min(places) < 1:
        fail(
            ShapeError,
            "unfold",
            f"no window of size {kernel} (dilation {dilation}) fits into {x.shape[2:]} with padding {padding}.",
        )
    return x.like((x.shape[0], x.shape[1] * math.prod(kernel), math.prod(places)))


structured(
    "_unfold(Tensor input, int[] kernel, int[] stride, int[] padding, int[] dilation)",
    placement="samples",
    batch="fold",
    infer=_infer_unfold,
    grad={"input": lambda c, g: F._fold(g, c.shape("input")[2:], c.kernel, c.stride, c.padding, c.dilation)},
    doc="Windows of (N, C, ...) as columns: (N, C * kernel, windows).",
)

structured(
    "_fold(Tensor input, int[] size, int[] kernel, int[] stride, int[] padding, int[] dilation)",
    batch="fold",
    infer=lambda x, size, kernel, *rest: x.like((x.shape[0], x.shape[1] // math.prod(kernel), *size)),
    grad={"input": lambda c, g: F._unfold(g, c.kernel, c.stride, c.padding, c.dilation)},
    doc="Columns (N, C * kernel, windows) added up where their windows lie: (N, C, *size).",
)


def _pairs(op: str, **given: Any) -> tuple[Shape, ...]:
    """Arguments of a two-dimensional window."""
    out = []
    for name, value in given.items():
        pair = per_dim(op, name, value, 2)
        (check_not_negative if name == "padding" else check_positive)(op, name, pair)
        out.append(pair)
    return tuple(out)


@composite(namespaces=NN, method=False)
def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Windows of a batch of images as columns: (N, C, H, W) becomes (N, C * kernel, windows).

    >>> votive.nn.functional.unfold(votive.arange(4.0).view(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """
    op = "unfold"
    kernel, dilation, padding, stride = _pairs(
        op, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    x, alone = batched(op, input, 2)
    if 0 in tuple(x.shape)[1:]:
        fail(RuntimeError, op, f"only the batch may be empty, got shape {tuple(input.shape)}.")
    y = F._unfold(x, kernel, stride, padding, dilation)
    return y.squeeze(0) if alone else y


@composite(namespaces=NN, method=False)
def fold(
    input: Tensor,
    output_size: Sequence[int],
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns of windows added up to images: (N, C * kernel, windows) becomes (N, C, *output_size).

    >>> votive.nn.functional.fold(votive.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    op = "fold"
    size, kernel, dilation, padding, stride = _pairs(
        op, output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    x, alone = batched(op, input, 1)
    shape = tuple(x.shape)
    if 0 in shape[1:]:
        fail(RuntimeError, op, f"only the batch may be empty, got shape {tuple(input.shape)}.")
    places = counts(size, kernel, stride, padding, dilation)
    if shape[1] % math.prod(kernel):
        fail(
            RuntimeError,
            op,
            f"the {shape[1]} rows of input must be a multiple of {math.prod(kernel)}, the size of the kernel {kernel}.",
        )
    if min(places) < 1 or math.prod(places) != shape[2]:
        fail(RuntimeError, op, f"an output of size {size} has {places} windows, but input has {shape[2]} columns.")
    y = F._fold(x, size, kernel, stride, padding, dilation)
    return y.squeeze(0) if alone else y


def check_one_dtype(op: str, x: Tensor, **others: Any) -> None:
    """Raise unless all tensors have the dtype of the first."""
    for name, t in others.items():
        if t is not None and t.dtype is not x.dtype:
            fail(DtypeError, op, f"{name} must have the dtype of input, {x.dtype}, got {t.dtype}.")
