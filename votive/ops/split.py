"""Cutting a tensor into views: split, chunk, unbind, tensor_split and kin."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ..core.errors import DimError, fail
from ..core.layout import Spec, wrap_dim
from ..core.remembered import remembered
from .registry import F, composite, structured
from .sizes import int_of, ints

if TYPE_CHECKING:
    from .types import Ints, Sequence, Tensor


def _cut(op: str, input: Tensor, dim: int) -> tuple[int, int]:
    """(dim, its size) of a tensor to be cut."""
    shape = input._spec.shape
    if not shape:
        fail(RuntimeError, op, "expects at least one dimension, got a 0-d tensor.")
    dim = wrap_dim(op, dim, len(shape), shape)
    return dim, shape[dim]


def _sized(x: Spec, dim: int, size: int) -> Spec:
    return x.like((*x.shape[:dim], size, *x.shape[dim + 1 :]))


def _stacked(x: Spec, dim: int, parts: Sequence[Tensor]) -> Tensor:
    """Parts joined along a new dimension, in the memory order of `x`: what made `x` a view of
    something dense can then be undone without a copy.
    """
    order = sorted(range(x.ndim), key=lambda d: -x.strides[d])
    if order == list(range(x.ndim)):
        return F.stack(parts, dim)
    rest = [d - (d > dim) for d in order if d != dim]
    made = F.stack([g.permute(rest) for g in parts], order.index(dim))
    return made.permute([order.index(d) for d in range(x.ndim)])


structured(
    "_split(Tensor input, int[] sizes, int dim)",
    placement="split",
    batch="dims",
    infer=lambda x, sizes, dim: tuple(_sized(x, dim, s) for s in sizes),
    grad={"input": lambda c, *g: F.cat(g, c.dim)},
    n_out=2,
    doc="Copies of pieces that make up the whole; `split` gives views with this gradient.",
)

structured(
    "_unbind(Tensor input, int dim)",
    placement="split",
    batch="dims",
    infer=lambda x, dim: (x.like(x.shape[:dim] + x.shape[dim + 1 :]),) * int(x.shape[dim]),
    grad={"input": lambda c, *g: _stacked(c.spec("input"), c.dim, g)},
    n_out=2,
    doc="Copies of the slices along a dimension; `unbind` gives views with this gradient.",
)


def _between(input: Tensor, dim: int, ends: list[int]) -> tuple[Any, ...]:
    """The pieces of a whole as views."""
    cuts = tuple(itertools.pairwise(ends))
    return F._views(input, "_split", (tuple([b - a for a, b in cuts]), dim), dim, cuts)


@composite(looks=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of given sizes, without copying.

    >>> votive.split_with_sizes(votive.tensor([1, 2, 3]), (1, 2))
    (tensor([1]), tensor([2, 3]))
    """
    op = "split_with_sizes"
    sizes = ints(op, "split_sizes", split_sizes)
    dim, size = _cut(op, input, dim)
    if any(s < 0 for s in sizes):
        fail(RuntimeError, op, f"sizes must not be negative, got {sizes}.")
    if sum(sizes) != size:
        fail(RuntimeError, op, f"sizes {sizes} must sum to {size}, the size of dimension {dim}, not to {sum(sizes)}.")
    ends = [0]
    for s in sizes:
        ends.append(ends[-1] + s)
    return _between(input, dim, ends)


@remembered(4096)
def _cuts(size: int, step: int) -> tuple[Any, ...]:
    """The sizes of even pieces, and where they begin and end."""
    count = int(max(1, -(-size // step))) if step else 1
    cuts = tuple(itertools.pairwise([*[i * step for i in range(count)], size]))
    return tuple([b - a for a, b in cuts]), cuts


def _even(op: str, input: Tensor, step: int, dim: int) -> tuple[Any, ...]:
    dim, size = _cut(op, input, dim)
    if step < 0 or (step == 0 and size):
        fail(RuntimeError, op, f"split_size must be positive, got {step} for size {size}.")
    sizes, cuts = _cuts(size, step)
    return F._views(input, "_split", (sizes, dim), dim, cuts)


@composite(method=False, looks=True)
def split(tensor: Tensor, split_size_or_sections: Ints, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of one size (the last may be smaller) or of given sizes, without copying.

    >>> votive.split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    given = split_size_or_sections
    if isinstance(given, (list, tuple)):
        return split_with_sizes(tensor, given, dim)
    return _even("split", tensor, int_of("split", "split_size", given), dim)


@composite(name="split", key="Tensor.split", namespaces=(), looks=True)
def split_method(input: Tensor, split_size: Ints, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of one size (the last may be smaller) or of given sizes, without copying.

    >>> votive.tensor([1, 2, 3]).split(2)
    (tensor([1, 2]), tensor([3]))
    """
    return split(input, split_size, dim)


@composite(looks=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Cut into at most `chunks` pieces of equal size (the last may be smaller), without copying.

    >>> votive.chunk(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    chunks = int_of("chunk", "chunks", chunks)
    dim, size = _cut("chunk", input, dim)
    if chunks <= 0:
        fail(RuntimeError, "chunk", f"chunks must be positive, got {chunks}.")
    if size == 0:
        return _between(input, dim, [0] * (chunks + 1))
    return _even("chunk", input, -(-size // chunks), dim)


@composite
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Any, ...]:
    """`split`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return _even("unsafe_split", input, int_of("unsafe_split", "split_size", split_size), dim)


@composite
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """`split_with_sizes`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_split_with_sizes(votive.tensor([1, 2, 3]), (1, 2))
    (tensor([1]), tensor([2, 3]))
    """
    return split_with_sizes(input, split_sizes, dim)


@composite
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """`chunk`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_chunk(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return chunk(input, chunks, dim)


@composite(looks=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Any, ...]:
    """The slices along a dimension as a tuple, without copying.

    >>> votive.unbind(votive.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        fail(DimError, "unbind", "a 0-d tensor has no dimension to remove.")
    dim = wrap_dim("unbind", dim, input.ndim, input._spec.shape)
    return F._views(input, "_unbind", (dim,), dim, int(input._spec.shape[dim]))


def _given(op: str, *spellings: Any) -> Any:
    """The argument that torch's overloads name differently, under whichever name it came."""
    found = [v for v in spellings if v is not None]
    if len(found) != 1:
        raise TypeError(f"{op}: needs the indices or the number of sections, once.")
    return found[0]


@composite(looks=True)
def tensor_split(
    input: Tensor,
    indices_or_sections: Tensor | Ints | None = None,
    dim: int = 0,
    *,
    sections: int | None = None,
    indices: Ints | None = None,
    tensor_indices_or_sections: Tensor | Ints | None = None,
) -> tuple[Any, ...]:
    """Cut at given indices, or into a number of nearly equal pieces, without copying.

    >>> votive.tensor_split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    op = "tensor_split"
    given = _given(op, indices_or_sections, sections, indices, tensor_indices_or_sections)
    dim, size = _cut(op, input, dim)
    if hasattr(given, "_spec"):
        if given.ndim > 1 or given.dtype.name != "int64":
            fail(RuntimeError, op, f"needs a 0-d or 1-d int64 tensor, got {given.dtype}, {given.ndim}-d.")
        given = given.tolist()
    if isinstance(given, (list, tuple)):
        points = [0, *ints(op, "indices", given), size]
        starts = [min(max(p + size if p < 0 else p, 0), size) for p in points[:-1]]
        ends = [min(max(p + size if p < 0 else p, 0), size) for p in points[1:]]
        return tuple([F._slice(input, dim, a, max(a, b), 1) for a, b in zip(starts, ends, strict=True)])
    sections = int_of(op, "sections", given)
    if sections <= 0:
        fail(RuntimeError, op, f"the number of sections must be positive, got {sections}.")
    whole, extra = divmod(size, sections)
    return _between(input, dim, [i * whole + min(i, extra) for i in range(sections + 1)])


def _split_along(op: str, input: Tensor, given: Ints, least: int, dim: int) -> tuple[Any, ...]:
    if input.ndim < least:
        fail(RuntimeError, op, f"needs at least {least} dimensions, got {input.ndim}.")
    if not isinstance(given, (list, tuple)):
        count, size = int_of(op, "sections", given), input._spec.shape[dim]
        if count <= 0 or size % count:
            fail(RuntimeError, op, f"size {size} of dimension {dim} is not divisible by {count}.")
    return tensor_split(input, given, dim)


@composite(looks=True)
def hsplit(
    input: Tensor,
    indices_or_sections: Tensor | Ints | None = None,
    *,
    sections: int | None = None,
    indices: Ints | None = None,
) -> tuple[Any, ...]:
    """Cut along dimension 1, or 0 for vectors.

    >>> votive.hsplit(votive.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    given = _given("hsplit", indices_or_sections, sections, indices)
    return _split_along("hsplit", input, given, 1, 0 if input.ndim == 1 else 1)


@composite(looks=True)
def vsplit(
    input: Tensor,
    indices_or_sections: Tensor | Ints | None = None,
    *,
    sections: int | None = None,
    indices: Ints | None = None,
) -> tuple[Any, ...]:
    """Cut along dimension 0.

    >>> votive.vsplit(votive.tensor([[1], [2]]), 2)
    (tensor([[1]]), tensor([[2]]))
    """
    given = _given("vsplit", indices_or_sections, sections, indices)
    return _split_along("vsplit", input, given, 2, 0)


@composite(looks=True)
def dsplit(
    input: Tensor,
    indices_or_sections: Tensor | Ints | None = None,
    *,
    sections: int | None = None,
    indices: Ints | None = None,
) -> tuple[Any, ...]:
    """Cut along dimension 2.

    >>> votive.dsplit(votive.tensor([[[1, 2]]]), 2)
    (tensor([[[1]]]), tensor([[[2]]]))
    """
    given = _given("dsplit", indices_or_sections, sections, indices)
    return _split_along("dsplit", input, given, 3, 2)
