"""The same values several times: expand and broadcasting share memory, repeat and tile copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail, received
from ..core.layout import Size, Spec, contiguous_strides, wrap_dim
from ..core.layout import broadcast_shapes as common_shape
from ..core.memory_format import contiguous_format
from .registry import F, composite, structured, view
from .schema import is_tensor
from .sizes import also_named, gathered, int_of, ints

if TYPE_CHECKING:
    from .declaration import Resolved
    from .types import Callable, Ints, Operand, Sequence, Tensor


def _infer_expand(x: Spec, size: tuple[int, ...]) -> tuple[Spec, int]:
    lead = len(size) - x.ndim
    if lead < 0:
        fail(RuntimeError, "expand", f"the number of sizes {size} must be at least the number of dimensions {x.ndim}.")
    shape, strides = list(size), [0] * len(size)
    for i in range(len(size) - 1, -1, -1):
        if i >= lead:
            have, strides[i] = x.shape[i - lead], x.strides[i - lead]
        else:
            # A new dimension of size 1 gets the stride it would have in a row-major tensor.
            have, strides[i] = 1, shape[i + 1] * strides[i + 1] if i + 1 < len(size) else 0
        if size[i] == -1 and i >= lead:
            shape[i] = have
        elif size[i] != have:
            if have != 1 or size[i] < 0:
                fail(
                    ShapeError,
                    "expand",
                    f"size {size[i]} must match the existing size {have} at dimension {i}; "
                    f"asked {size}, shape {x.shape}.",
                )
            strides[i] = 0
    return x.like(tuple(shape), strides=tuple(strides)), 0


view(
    "_expand(Tensor input, int[] size)",
    placement="expanded",
    infer=_infer_expand,
    grad={"input": lambda c, g: F._reduce_to(g, c.shape("input"))},
    doc="Dimensions of size 1 stretched without copying.",
)


@composite(namespaces=(), returns_view=True)
@also_named("size")
def expand(input: Tensor, *size: Ints, implicit: bool = False) -> Tensor:
    """Stretch dimensions of size 1 without copying; -1 keeps a size.

    >>> votive.tensor([[1], [2]]).expand(2, 2)
    tensor([[1, 1],
            [2, 2]])
    """
    return F._expand(input, gathered("expand", "size", size))


@composite(namespaces=(), returns_view=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Stretch to the shape of another tensor without copying.

    >>> votive.tensor([1, 2]).expand_as(votive.zeros(2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return F._expand(input, other._spec.shape)


@composite(returns_view=True)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Stretch to a shape without copying.

    >>> votive.broadcast_to(votive.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return F._expand(input, ints("broadcast_to", "size", size))


@composite(method=False)
def broadcast_shapes(*shapes: Ints) -> Size:
    """The shape that tensors of these shapes broadcast to.

    >>> votive.broadcast_shapes((2, 1), (3,))
    votive.Size([2, 3])
    """
    given = [ints("broadcast_shapes", "shapes", s) for s in shapes]
    if any(n < 0 for s in given for n in s):
        raise ValueError(f"broadcast_shapes: sizes must not be negative, got {given}.")
    return Size(common_shape("broadcast_shapes", *given) if given else ())


@composite(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Any, ...]:
    """Stretch tensors to their common shape without copying.

    >>> a, b = votive.broadcast_tensors(votive.zeros(2, 1), votive.zeros(3))
    >>> a.shape, b.shape
    (votive.Size([2, 3]), votive.Size([2, 3]))
    """
    for t in tensors:
        if not hasattr(t, "_spec"):
            raise TypeError(f"broadcast_tensors: expected tensors, got {received(t)}.")
    if not tensors:
        return ()
    shape = common_shape("broadcast_tensors", *[t._spec.shape for t in tensors])
    return tuple([t if t._spec.shape == shape else F._expand(t, shape) for t in tensors])


@composite(namespaces=())
@also_named("repeats")
def repeat(input: Tensor, *repeats: Ints) -> Tensor:
    """Copies of the tensor side by side along each dimension.

    >>> votive.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    times = gathered("repeat", "repeats", repeats)
    shape = input._spec.shape
    lead = len(times) - len(shape)
    if lead < 0:
        fail(RuntimeError, "repeat", f"needs a number for each dimension of {shape}, got {times}.")
    if any(n < 0 for n in times):
        fail(RuntimeError, "repeat", f"numbers must not be negative, got {times}.")
    shape = (1,) * lead + shape
    if all(n == 1 for n in times):
        return F.clone(F.reshape(input, shape), memory_format=contiguous_format)
    # One dimension per (copy, element) pair: stretching the first makes the copies.
    pairs = [n for s in shape for n in (1, s)]
    wide = [n for k, s in zip(times, shape, strict=True) for n in (k, s)]
    out = F._expand(F.reshape(input, pairs), tuple(wide))
    copied = F.clone(out, memory_format=contiguous_format)
    return F._view(copied, tuple([k * s for k, s in zip(times, shape, strict=True)]))


@composite
@also_named("dims")
def tile(input: Tensor, *dims: Ints) -> Tensor:
    """`repeat` that fills missing leading numbers with 1.

    >>> votive.tile(votive.tensor([[1], [2]]), (2,))
    tensor([[1, 1],
            [2, 2]])
    """
    times = gathered("tile", "dims", dims)
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


def _infer_interleave(repeats: Spec, output_size: int | None) -> Spec | None:
    return None if output_size is None else repeats.like((output_size,))


structured(
    "_interleave_indices(Tensor repeats, int? output_size=None)",
    infer=_infer_interleave,
    differentiable=False,
    doc="The index of each element, as often as it is repeated.",
)


def _indices(repeats: Tensor, output_size: int | None) -> Tensor:
    op = "repeat_interleave"
    if repeats.dtype not in (dt.int32, dt.int64):
        fail(UnsupportedError, op, f"repeats must be int32 or int64, got {repeats.dtype}.")
    return F._interleave_indices(repeats, output_size)


@composite(name="_repeat_each")
def _repeat_each(input: Tensor, dim: int, wide: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """A copy with a new dimension behind `dim` that repeats, seen in another shape."""
    copied = F._copy_as(F._expand(F.unsqueeze(input, dim + 1), wide), input._spec.dtype, contiguous_strides(wide))
    return F._view(copied, shape)


def _interleave_shortcut(input: Tensor, repeats: int, dim: int) -> Resolved:
    if type(repeats) is not int:
        return None
    return F._repeat_each, _interleaved(
        input, repeats, wrap_dim("repeat_interleave", dim, input.ndim, input._spec.shape)
    )


@composite(shortcut=_interleave_shortcut)
def repeat_interleave(
    input: Tensor, repeats: Operand | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element `repeats` times in a row; with one argument, the indices that do so.

    >>> votive.repeat_interleave(votive.tensor([1, 2]), votive.tensor([1, 3]))
    tensor([1, 2, 2, 2])
    """
    op = "repeat_interleave"
    if repeats is None:
        if input.ndim != 1:
            fail(RuntimeError, op, f"repeats must be 1-d, got shape {input._spec.shape}.")
        return _indices(input, output_size)
    if dim is None:
        input, dim = F.flatten(input), 0
    dim = wrap_dim(op, dim, input.ndim, input._spec.shape)
    if is_tensor(repeats) and repeats._spec.numel == 1 and repeats.ndim <= 1:
        if repeats.dtype not in (dt.int32, dt.int64):
            fail(UnsupportedError, op, f"repeats must be int32 or int64, got {repeats.dtype}.")
        repeats = repeats.item()
    if not is_tensor(repeats):
        return F._repeat_each(*_interleaved(input, int_of(op, "repeats", repeats), dim, output_size))
    if repeats.ndim > 1:
        fail(RuntimeError, op, f"repeats must be 0-d or 1-d, got shape {repeats._spec.shape}.")
    if repeats._spec.numel != input.size(dim):
        fail(ShapeError, op, f"repeats has {repeats._spec.numel} numbers for {input.size(dim)} elements of {dim}.")
    return F.index_select(input, dim, _indices(repeats, output_size))


def _interleaved(input: Tensor, times: int, dim: int, output_size: int | None = None) -> tuple[Any, ...]:
    """Arguments of `_repeat_each`, checked."""
    op = "repeat_interleave"
    if times < 0:
        fail(RuntimeError, op, f"repeats must not be negative, got {times}.")
    shape = input._spec.shape
    input.size(dim)  # a 0-d tensor has no dimension to repeat along
    length = shape[dim] * times
    if output_size not in (None, length):
        fail(RuntimeError, op, f"output_size must be {length}, got {output_size}.")
    return input, dim, (*shape[: dim + 1], times, *shape[dim + 1 :]), (*shape[:dim], length, *shape[dim + 1 :])


def _each(op: str, tensors: tuple[Any, ...], change: Callable[..., Any]) -> Any:
    """Apply to one tensor, or to each of several or of a list."""
    if len(tensors) == 1:
        if hasattr(tensors[0], "_spec"):
            return change(tensors[0])
        tensors = tuple(tensors[0])
    for t in tensors:
        if not hasattr(t, "_spec"):
            raise TypeError(f"{op}: expected tensors, got {received(t)}.")
    return tuple([change(t) for t in tensors])


@composite(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with at least one dimension.

    >>> votive.atleast_1d(votive.tensor(5))
    tensor([5])
    """
    return _each("atleast_1d", tensors, lambda t: t if t.ndim else F.reshape(t, 1))


@composite(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with at least two dimensions; a vector becomes a row.

    >>> votive.atleast_2d(votive.tensor([1, 2]))
    tensor([[1, 2]])
    """

    def rows(t: Tensor) -> Tensor:
        if t.ndim == 0:
            return F.reshape(t, (1, 1))
        return F.unsqueeze(t, 0) if t.ndim == 1 else t

    return _each("atleast_2d", tensors, rows)


@composite(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with at least three dimensions; a matrix gets a last one of size 1.

    >>> votive.atleast_3d(votive.tensor([1, 2])).shape
    votive.Size([1, 2, 1])
    """

    def deep(t: Tensor) -> Tensor:
        if t.ndim == 0:
            return F.reshape(t, (1, 1, 1))
        if t.ndim == 1:
            return F.unsqueeze(F.unsqueeze(t, 0), -1)
        return F.unsqueeze(t, -1) if t.ndim == 2 else t

    return _each("atleast_3d", tensors, deep)
