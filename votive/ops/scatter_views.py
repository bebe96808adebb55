"""Functional writes through a window: a copy of the input in which one view was replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, fail
from ..core.layout import Spec, has_overlap
from .registry import OPS, F, composite, structured
from .strided import shared_block, window_args

if TYPE_CHECKING:
    from .types import Callable, Sequence, Tensor


def _canon(view_op: str) -> Callable[..., Any]:
    """Canonical arguments of the view, with `src` checked against what it shows."""

    def canon(x: Spec, src: Spec, *args: int | None) -> tuple[Any, ...]:
        op = OPS[view_op]
        assert op.canon is not None
        assert op.infer is not None
        args = tuple(op.canon(x, *args)[1:])
        window, _ = op.infer(x, *args)
        if src.shape != window.shape:
            fail(
                ShapeError,
                f"{view_op.strip('_')}_scatter",
                f"src must have the shape of the view, {window.shape}, got {src.shape}.",
            )
        return (x, src, *args)

    return canon


def _hole(g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """What reaches the input where `src` was written: nothing."""
    return F.zeros(shape, dtype=g.dtype, device=g.device)


structured(
    "select_scatter(Tensor input, Tensor src, int dim, int index)",
    batch="dims",
    canon=_canon("select"),
    infer=lambda x, src, dim, index: x.dense_like(),
    grad={
        "input": lambda c, g: F.select_scatter(g, _hole(g, c.shape("src")), c.dim, c.index),
        "src": lambda c, g: g.select(c.dim, c.index),
    },
    doc="""A copy of `input` with `src` in place of one slice.

    >>> votive.select_scatter(votive.zeros(2, 2), votive.tensor([1.0, 2.0]), 0, 1)
    tensor([[0., 0.],
            [1., 2.]])
    """,
)

structured(
    "slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)",
    batch="dims",
    canon=_canon("_slice"),
    infer=lambda x, src, dim, start, end, step: x.dense_like(),
    grad={
        "input": lambda c, g: F.slice_scatter(g, _hole(g, c.shape("src")), c.dim, c.start, c.end, c.step),
        "src": lambda c, g: F._slice(g, c.dim, c.start, c.end, c.step),
    },
    doc="""A copy of `input` with `src` in place of a range along a dimension.

    >>> votive.slice_scatter(votive.zeros(4), votive.tensor([1.0, 2.0]), 0, 1, 3)
    tensor([0., 1., 2., 0.])
    """,
)

structured(
    "diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1)",
    batch="dims",
    canon=_canon("diagonal"),
    infer=lambda x, src, offset, dim1, dim2: x.dense_like(),
    grad={
        "input": lambda c, g: F.diagonal_scatter(g, _hole(g, c.shape("src")), c.offset, c.dim1, c.dim2),
        "src": lambda c, g: g.diagonal(c.offset, c.dim1, c.dim2),
    },
    doc="""A copy of `input` with `src` in place of a diagonal.

    >>> votive.diagonal_scatter(votive.zeros(2, 2), votive.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """,
)

structured(
    "_write_window(Tensor input, Tensor src, int[] stride, int offset)",
    infer=lambda x, src, stride, offset: x.like(x.shape),
    grad={
        "input": lambda c, g: F._write_window(g, _hole(g, c.shape("src")), c.stride, c.offset),
        "src": lambda c, g: F._as_strided(g.contiguous(), c.shape("src"), c.stride, c.offset),
    },
    doc="A row-major copy of `input` with `src` written through a window on it.",
)


@composite
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input`, with its strides, in which `src` was written through a window.

    >>> votive.as_strided_scatter(votive.zeros(2, 2), votive.tensor([1.0, 2.0]), (2,), (3,))
    tensor([[1., 0.],
            [0., 2.]])
    """
    op = "as_strided_scatter"
    if has_overlap(input._spec.shape, input._spec.strides):
        input = F.clone(input)
    shape, strides, shift = window_args(op, input, size, stride, storage_offset)
    if src._spec.shape != shape:
        fail(ShapeError, op, f"src must have the shape of the view, {shape}, got {src._spec.shape}.")
    x = input._spec
    # The window may reach memory between the elements of `input`, so work on the block around both.
    length, start, window = shared_block(x, shape, strides, shift)
    block = F._into_window(input, (length,), x.strides, start)
    written = F._write_window(block, src, strides, window)
    return F._as_strided(written, x.shape, x.strides, start)
