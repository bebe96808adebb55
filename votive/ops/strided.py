"""Windows on a tensor's memory: select, slice, narrow, unfold, as_strided. Knows no bytes.

Every window has one backward: zeros in the shape of the input, to which the gradient is added
through the same window. `_into_window` does it for all of them; reading the window is its backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import DimError, ShapeError, fail
from ..core.layout import Layout, Spec, extent, has_overlap, slice_bounds, wrap_dim
from .registry import OPS, F, composite, structured, view
from .schema import is_tensor
from .sizes import int_of, ints

if TYPE_CHECKING:
    from .types import Context, Sequence, Tensor

structured(
    "_into_window(Tensor input, int[] size, int[] stride, int offset)",
    infer=lambda x, size, stride, offset: x.like(size),
    grad={"input": lambda c, g: F._as_strided(g.contiguous(), c.shape("input"), c.stride, c.offset)},
    doc="Zeros of `size`, row-major, to which `input` is added through a window on them.",
)


def from_window(g: Tensor, shape: tuple[int, ...], op: str, *args: Any) -> Tensor:
    """Backward of the view `op`: the gradient put back where the view looked."""
    infer = OPS[op].infer
    assert infer is not None
    window, offset = infer(g._spec.like(shape), *args)
    return F._into_window(g, shape, window.strides, offset)


def _canon_select(x: Spec, dim: int, index: int) -> tuple[Any, ...]:
    if x.ndim == 0:
        fail(DimError, "select", "cannot be applied to a 0-d tensor.")
    dim = wrap_dim("select", dim, x.ndim, x.shape)
    size = x.shape[dim]
    if not -size <= index < size:
        fail(
            DimError,
            "select",
            f"index {index} is out of range for shape {x.shape} at dimension {dim}; use {-size}..{size - 1}.",
        )
    return x, dim, index % size


def _infer_select(x: Spec, dim: int, index: int) -> tuple[Spec, int]:
    shape = x.shape[:dim] + x.shape[dim + 1 :]
    strides = x.strides[:dim] + x.strides[dim + 1 :]
    return x.like(shape, strides=strides), index * x.strides[dim]


view(
    "select(Tensor input, int dim, int index)",
    placement="selected",
    batch="dims",
    canon=_canon_select,
    infer=_infer_select,
    grad={"input": lambda c, g: from_window(g, c.shape("input"), "select", c.dim, c.index)},
    doc="""One slice along a dimension, which is removed.

    >>> votive.select(votive.tensor([[1, 2], [3, 4]]), 1, 0)
    tensor([1, 3])
    """,
)


def _canon_slice(x: Spec, dim: int, start: int | None, end: int | None, step: int) -> tuple[Any, ...]:
    if x.ndim == 0:
        fail(DimError, "slice", "cannot be applied to a 0-d tensor.")
    if step <= 0:
        fail(RuntimeError, "slice", f"step must be positive, got {step}; use flip() to reverse.")
    dim = wrap_dim("slice", dim, x.ndim, x.shape)
    start, end = slice_bounds(start, end, x.shape[dim])
    return x, dim, start, max(start, end), step


def _infer_slice(x: Spec, dim: int, start: int, end: int, step: int) -> tuple[Spec, int]:
    shape, strides = list(x.shape), list(x.strides)
    shape[dim] = (end - start + step - 1) // step
    strides[dim] *= step
    return x.like(tuple(shape), strides=tuple(strides)), start * x.strides[dim]


view(
    "_slice(Tensor input, int dim=0, int? start=None, int? end=None, int step=1)",
    placement="sliced",
    batch="dims",
    canon=_canon_slice,
    infer=_infer_slice,
    grad={"input": lambda c, g: from_window(g, c.shape("input"), "_slice", c.dim, c.start, c.end, c.step)},
    doc="Every `step`-th element from `start` up to `end` along a dimension.",
)


def narrowed(op: str, input: Tensor, dim: int, start: Tensor | int, length: int) -> tuple[int, int, int]:
    """(dim, start, end) of `narrow`, checked."""
    if input.ndim == 0:
        fail(RuntimeError, op, "cannot be applied to a 0-d tensor.")
    if is_tensor(start) and (start.ndim or start.dtype.category != 1):
        fail(RuntimeError, op, f"start must be a 0-d integer tensor, got {start.dtype}.")
    begin, length = int_of(op, "start", start), int_of(op, "length", length)
    if length < 0:
        fail(RuntimeError, op, f"length must not be negative, got {length}.")
    shape = input._spec.shape
    dim = wrap_dim(op, dim, input.ndim, shape)
    size = shape[dim]
    if not -size <= begin <= size:
        fail(DimError, op, f"start {begin} is out of range for size {size}; use {-size}..{size}.")
    begin = begin + size if begin < 0 else begin
    if begin + length > size:
        fail(RuntimeError, op, f"start {begin} + length {length} exceeds the size {size}.")
    return dim, begin, begin + length


@composite(returns_view=True)
def narrow(input: Tensor, dim: int, start: Tensor | int, length: int) -> Tensor:
    """`length` elements from `start` on along a dimension, without copying.

    >>> votive.narrow(votive.tensor([1, 2, 3, 4]), 0, 1, 2)
    tensor([2, 3])
    """
    return F._slice(input, *narrowed("narrow", input, dim, start, length), 1)


def _canon_unfold(x: Spec, dimension: int, size: int, step: int) -> tuple[Any, ...]:
    dim = wrap_dim("unfold", dimension, x.ndim, x.shape)
    if size < 0:
        fail(RuntimeError, "unfold", f"size must not be negative, got {size}.")
    if step <= 0:
        fail(RuntimeError, "unfold", f"step must be positive, got {step}.")
    length = x.shape[dim] if x.ndim else 1
    if size > length:
        fail(
            ShapeError, "unfold", f"size {size} is larger than the dimension {dim} of {x.shape}; use at most {length}."
        )
    return x, dim, size, step


def _infer_unfold(x: Spec, dim: int, size: int, step: int) -> tuple[Spec, int]:
    if x.ndim == 0:
        return x.like((size,), strides=(1,)), 0
    shape, strides = list(x.shape), list(x.strides)
    shape[dim] = (x.shape[dim] - size) // step + 1
    strides[dim] *= step
    return x.like((*shape, size), strides=(*strides, x.strides[dim])), 0


view(
    "unfold(Tensor input, int dimension, int size, int step)",
    placement="unfolded",
    batch="dims",
    canon=_canon_unfold,
    infer=_infer_unfold,
    grad={"input": lambda c, g: from_window(g, c.shape("input"), "unfold", c.dimension, c.size, c.step)},
    namespaces=(),
    doc="""Windows of `size` elements every `step` along a dimension; they become the last one.

    >>> votive.tensor([1, 2, 3, 4]).unfold(0, 2, 1)
    tensor([[1, 2],
            [2, 3],
            [3, 4]])
    """,
)


def shared_block(x: Spec, size: tuple[int, ...], stride: tuple[int, ...], shift: int) -> tuple[int, int, int]:
    """The block that a tensor and a window span: (length, start of the tensor, of the window)."""
    low = min(0, shift)
    length = max(extent(x.shape, x.strides), shift + extent(size, stride)) - low
    return length, -low, shift - low


def _grad_as_strided(c: Context, g: Tensor) -> Tensor:
    x = c.spec("input")
    length, start, window = shared_block(x, c.size, c.stride, c.shift)
    block = F._into_window(g, (length,), c.stride, window)
    if has_overlap(x.shape, x.strides):
        # Each of the elements that share a place stands for a part of it, as in torch.
        block = block / F._visits(length, x.shape, x.strides, start, g.dtype, g.device)
    return F._as_strided(block, x.shape, x.strides, start)


view(
    "_as_strided(Tensor input, int[] size, int[] stride, int shift)",
    infer=lambda x, size, stride, shift: (x.like(size, strides=stride), shift),
    grad={"input": _grad_as_strided},
    doc="A window that starts `shift` elements behind the first element of `input`.",
)

structured(
    "_visits(int length, int[] size, int[] stride, int offset, dtype dtype, any device)",
    infer=lambda length, size, stride, offset, dtype, device: Spec(Layout((length,)), dtype, device),
    differentiable=False,
    doc="How many indices of a window lead to each place of a block, at least 1.",
)


def window_args(
    op: str, input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> tuple[Any, ...]:
    """(size, stride, shift) of a window within the memory of `input`."""
    size, stride = ints(op, "size", size), ints(op, "stride", stride)
    offset = input._offset if storage_offset is None else int_of(op, "storage_offset", storage_offset)
    if len(size) != len(stride):
        fail(RuntimeError, op, f"size {size} and stride {stride} differ in length.")
    if any(s < 0 for s in size) or any(s < 0 for s in stride) or offset < 0:
        fail(RuntimeError, op, f"sizes, strides and the offset must not be negative, got {size}, {stride}, {offset}.")
    need = (offset + extent(size, stride)) * input._spec.dtype.itemsize
    have = input._storage.nbytes
    if need > have and 0 not in size:
        fail(
            RuntimeError,
            op,
            f"size {size}, stride {stride} and offset {offset} reach {need} bytes; the storage has {have}.",
        )
    return size, stride, offset - input._offset


@composite(looks=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Any window on the memory of `input`: element i lies at storage_offset + Σ i·stride.

    >>> votive.as_strided(votive.tensor([1, 2, 3, 4]), (2, 2), (1, 2))
    tensor([[1, 3],
            [2, 4]])
    """
    return F._as_strided(input, *window_args("as_strided", input, size, stride, storage_offset))
