"""Views in another shape: view, reshape, permute, squeeze and kin. Values never change."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec, infer_size, view_strides, wrap_dim, wrap_dims
from ..core.memory_format import contiguous_format
from ..core.remembered import remembered
from .registry import F, composite, view
from .sizes import also_named, gathered, ints

if TYPE_CHECKING:
    from .types import Ints, Sequence, Tensor, dtype


def _infer_view(x: Spec, size: tuple[int, ...]) -> tuple[Spec, int]:
    shape = infer_size("view", size, x.numel)
    strides = view_strides(x.shape, x.strides, shape)
    if strides is None:
        fail(
            RuntimeError,
            "view",
            f"size {shape} does not fit an input of shape {x.shape} and strides {x.strides}; use .reshape() instead.",
        )
    return x.like(shape, strides=strides), 0


view(
    "_view(Tensor input, int[] size)",
    placement="viewed",
    infer=_infer_view,
    grad={"input": lambda c, g: F.reshape(g, c.shape("input"))},
    doc="The same memory in another shape.",
)


def _infer_view_dtype(x: Spec, dtype: dt.dtype) -> tuple[Spec, int]:
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return x.like(dtype=dtype), 0
    if x.ndim == 0:
        fail(RuntimeError, "view", f"a 0-d {x.dtype} cannot be viewed as {dtype} of another size.")
    if x.strides[-1] != 1:
        fail(RuntimeError, "view", f"the last stride must be 1 to view {x.dtype} as {dtype}, got strides {x.strides}.")
    if old > new:
        times = old // new
        shape = (*x.shape[:-1], x.shape[-1] * times)
        strides = (*[s * times for s in x.strides[:-1]], 1)
        return x.like(shape, dtype=dtype, strides=strides), 0
    times = new // old
    if x.shape[-1] % times or any(s % times for s in x.strides[:-1]):
        fail(
            RuntimeError,
            "view",
            f"last size and other strides must be divisible by {times} to view {x.dtype} as "
            f"{dtype}, got shape {x.shape} and strides {x.strides}.",
        )
    shape = (*x.shape[:-1], x.shape[-1] // times)
    strides = (*[s // times for s in x.strides[:-1]], 1)
    return x.like(shape, dtype=dtype, strides=strides), 0


view(
    "_view_dtype(Tensor input, dtype dtype)",
    placement="elementwise",
    batch="same",
    infer=_infer_view_dtype,
    differentiable=False,
    doc="The same bytes read as another type.",
)


@composite(name="view", namespaces=(), returns_view=True)
@also_named("size")
def view_(input: Tensor, *size: Any, dtype: dtype | None = None) -> Tensor:
    """The same memory in another shape (-1 is inferred), or its bytes read as another dtype.

    >>> votive.tensor([1, 2, 3, 4]).view(2, -1)
    tensor([[1, 2],
            [3, 4]])
    """
    if dtype is None:
        if len(size) != 1 or not isinstance(size[0], dt.dtype):
            return F._view(input, gathered("view", "size", size))
        dtype = size[0]
    elif size:
        raise TypeError("view: takes a size or a dtype, not both.")
    times = input._spec.dtype.itemsize, dtype.itemsize
    if times[1] > times[0] and input._offset % (times[1] // times[0]):
        fail(RuntimeError, "view", f"storage offset {input._offset} is not aligned for {dtype}.")
    return F._view_dtype(input, dtype)


@remembered(4096)
def _reshaped(op: str, x: Spec, shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The shape with -1 replaced, and whether a view can show it."""
    size = infer_size(op, shape, x.numel)
    return size, view_strides(x.shape, x.strides, size) is not None


@composite(returns_view=True)
@also_named("shape")
def reshape(input: Tensor, *shape: Ints) -> Tensor:
    """The same values in another shape; a view when the layout allows, else a copy.

    >>> votive.reshape(votive.tensor([1, 2, 3, 4]), (2, 2))
    tensor([[1, 2],
            [3, 4]])
    """
    size, is_view = _reshaped("reshape", input._spec, gathered("reshape", "shape", shape))
    return F._view(input if is_view else F.clone(input, memory_format=contiguous_format), size)


@composite(namespaces=(), looks=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor.

    >>> votive.tensor([1, 2]).view_as(votive.zeros(2, 1)).shape
    votive.Size([2, 1])
    """
    return F._view(input, other._spec.shape)


@composite(namespaces=(), looks=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same values in the shape of another tensor.

    >>> votive.tensor([1, 2]).reshape_as(votive.zeros(2, 1)).shape
    votive.Size([2, 1])
    """
    return reshape(input, other._spec.shape)


def _infer_transpose(x: Spec, dim0: int, dim1: int) -> tuple[Spec, int]:
    if x.ndim == 0:
        return x, 0
    shape, strides = list(x.shape), list(x.strides)
    shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return x.like(tuple(shape), strides=tuple(strides)), 0


view(
    "transpose(Tensor input, int dim0, int dim1)",
    placement="transposed",
    batch="dims",
    canon=lambda x, dim0, dim1: (
        x,
        wrap_dim("transpose", dim0, x.ndim, x.shape),
        wrap_dim("transpose", dim1, x.ndim, x.shape),
    ),
    infer=_infer_transpose,
    grad={"input": lambda c, g: g.transpose(c.dim0, c.dim1)},
    aliases=("swapdims",),
    doc="""Exchange two dimensions.

    >>> votive.transpose(votive.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """,
)


@composite(returns_view=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions: `transpose` under NumPy's name.

    >>> votive.swapaxes(votive.zeros(2, 3), 0, 1).shape
    votive.Size([3, 2])
    """
    return F.transpose(input, axis0, axis1)


def _infer_t(x: Spec) -> tuple[Spec, int]:
    if x.ndim > 2:
        fail(RuntimeError, "t", f"expects at most 2 dimensions, got shape {x.shape}; use .mT.")
    return x.like(x.shape[::-1], strides=x.strides[::-1]), 0


view(
    "t(Tensor input)",
    placement="transposed",
    infer=_infer_t,
    grad={"input": lambda c, g: g.t()},
    doc="""The transpose of a matrix; vectors and numbers stay as they are.

    >>> votive.t(votive.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """,
)


def _canon_permute(x: Spec, dims: tuple[int, ...]) -> tuple[Spec, tuple[int, ...]]:
    if len(dims) != x.ndim:
        fail(RuntimeError, "permute", f"needs all {x.ndim} dimensions in their new order, got {dims}.")
    wrapped = tuple(wrap_dim("permute", d, x.ndim, x.shape) for d in dims)
    if len(set(wrapped)) != len(wrapped):
        fail(RuntimeError, "permute", f"a dimension appears twice in dims={dims}.")
    return x, wrapped


def inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


view(
    "_permute(Tensor input, int[] dims)",
    placement="transposed",
    canon=_canon_permute,
    infer=lambda x, dims: (x.like(tuple(x.shape[d] for d in dims), strides=tuple(x.strides[d] for d in dims)), 0),
    grad={"input": lambda c, g: F._permute(g, inverse(c.dims))},
    doc="Dimensions in another order.",
)


@composite(returns_view=True)
@also_named("dims")
def permute(input: Tensor, *dims: Ints) -> Tensor:
    """Dimensions in another order, without copying.

    >>> votive.permute(votive.zeros(2, 3, 4), (2, 0, 1)).shape
    votive.Size([4, 2, 3])
    """
    return F._permute(input, gathered("permute", "dims", dims))


@composite(aliases=("moveaxis",), returns_view=True)
def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Move some dimensions to other places; the rest keep their order.

    >>> votive.movedim(votive.zeros(2, 3, 4), 0, -1).shape
    votive.Size([3, 4, 2])
    """
    n = input.ndim
    given = ints("movedim", "source", source), ints("movedim", "destination", destination)
    if len(given[0]) != len(given[1]):
        fail(RuntimeError, "movedim", f"source and destination differ in length, got {given}.")
    src, dst = ([wrap_dim("movedim", d, n, input._spec.shape) for d in dims] for dims in given)
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        fail(RuntimeError, "movedim", f"a dimension appears twice in {given}.")
    if n == 0:
        return F._permute(input, ())
    placed = dict(zip(dst, src, strict=True))
    rest = iter([d for d in range(n) if d not in src])
    return F._permute(input, tuple([placed[i] if i in placed else next(rest) for i in range(n)]))


def _canon_squeeze(x: Spec, dim: tuple[int, ...] | None) -> tuple[Spec, tuple[int, ...]]:
    dims = wrap_dims("squeeze", dim, x.ndim or 1, empty_is_all=False)
    return x, tuple(d for d in dims if x.ndim and x.shape[d] == 1)


def _infer_squeeze(x: Spec, dim: tuple[int, ...]) -> tuple[Spec, int]:
    keep = [i for i in range(x.ndim) if i not in dim]
    return x.like(tuple(x.shape[i] for i in keep), strides=tuple(x.strides[i] for i in keep)), 0


view(
    "squeeze(Tensor input, int[]? dim=None)",
    placement="squeezed",
    canon=_canon_squeeze,
    infer=_infer_squeeze,
    grad={"input": lambda c, g: g.reshape(c.shape("input"))},
    doc="""Remove dimensions of size 1: all of them, or those named that have this size.

    >>> votive.squeeze(votive.zeros(1, 2, 1)).shape
    votive.Size([2])
    """,
)


def _infer_unsqueeze(x: Spec, dim: int) -> tuple[Spec, int]:
    stride = x.shape[dim] * x.strides[dim] if dim < x.ndim else 1
    return x.like((*x.shape[:dim], 1, *x.shape[dim:]), strides=(*x.strides[:dim], stride, *x.strides[dim:])), 0


view(
    "unsqueeze(Tensor input, int dim)",
    placement="unsqueezed",
    canon=lambda x, dim: (x, wrap_dim("unsqueeze", dim, x.ndim + 1)),
    infer=_infer_unsqueeze,
    grad={"input": lambda c, g: g.squeeze(c.dim)},
    doc="""Insert a dimension of size 1.

    >>> votive.unsqueeze(votive.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """,
)


@composite(returns_view=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from start_dim to end_dim into one.

    >>> votive.flatten(votive.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    shape = input._spec.shape
    start = wrap_dim("flatten", start_dim, len(shape), shape)
    end = wrap_dim("flatten", end_dim, len(shape), shape)
    if start > end:
        fail(RuntimeError, "flatten", f"start_dim {start_dim} comes after end_dim {end_dim}.")
    if not shape:
        return reshape(input, 1)
    if start == end:
        return input
    joined = math.prod(shape[start : end + 1])
    return reshape(input, (*shape[:start], joined, *shape[end + 1 :]))


@composite(returns_view=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Split one dimension into several; one of the sizes may be -1.

    >>> votive.unflatten(votive.zeros(6, 2), 0, (3, -1)).shape
    votive.Size([3, 2, 2])
    """
    shape = input._spec.shape
    sizes = ints("unflatten", "sizes", sizes)
    dim = wrap_dim("unflatten", dim, len(shape), shape)
    if not sizes or not shape:
        fail(RuntimeError, "unflatten", f"needs a dimension and its sizes, got {shape} and {sizes}.")
    parts = infer_size("unflatten", sizes, shape[dim])
    return F._view(input, (*shape[:dim], *parts, *shape[dim + 1 :]))


@composite(returns_view=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension, copied only when they do not lie in order.

    >>> votive.ravel(votive.tensor([[1, 2], [3, 4]]))
    tensor([1, 2, 3, 4])
    """
    return F._view(F.contiguous(input), (-1,))


def _adjoint(op: str, input: Tensor, high: int) -> Tensor:
    if input.ndim == 1 or input.ndim > high:
        kind = "matrices" if high == 2 else "matrices or batches of matrices"
        raise ShapeError(f"{op}: only supported on {kind}, got shape {input._spec.shape}.")
    flipped = F.transpose(input, -2, -1) if input.ndim else input
    return F.conj(flipped) if input._spec.dtype.is_complex else flipped


@composite(returns_view=True)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix or of each matrix in a batch.

    >>> votive.adjoint(votive.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    return _adjoint("adjoint", input, 64)


def _reversed(input: Any) -> Any:
    if input._spec.ndim == 2:
        return input.permute(1, 0)
    if input.ndim:
        warnings.warn(
            f"T: reversing the dimensions of a tensor of shape {input._spec.shape} is deprecated; "
            "use .mT for batches of matrices or permute().",
            UserWarning,
            stacklevel=2,
        )
    return F._permute(input, tuple(range(input.ndim))[::-1])


def _matrix_transpose(input: Any) -> Any:
    if input.ndim == 1:
        raise ShapeError(f"mT: only supported on matrices or batches of matrices, got shape {input._spec.shape}.")
    return F.transpose(input, -2, -1) if input.ndim else input


# Attributes of Tensor that are computed from it.
PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "T": _reversed,
    "mT": _matrix_transpose,
    "H": lambda input: _adjoint("H", input, 2),
    "mH": lambda input: _adjoint("mH", input, 64),
}
