"""Joining tensors and cutting them apart: cat, stack, split, chunk, unbind and kin."""

from __future__ import annotations

import itertools
from typing import Any

from ..core.errors import DimError, ShapeError, fail
from ..core.layout import Spec, wrap_dim
from ..core.promotion import result_type_of
from .copy import agreed_strides
from .registry import F, composite, structured
from .sizes import also_called, int_of, ints


def _promoted(tensors: tuple[Spec, ...]) -> Any:
    return result_type_of(
        [t.dtype for t in tensors if t.ndim], [t.dtype for t in tensors if not t.ndim], []
    )


def _is_skipped(x: Spec) -> bool:
    """A tensor of shape (0,) joins anything and adds nothing: a rule that old code relies on."""
    return x.shape == (0,)


def _canon_cat(tensors: tuple[Spec, ...], dim: int) -> tuple[Any, ...]:
    if not tensors:
        raise ValueError("cat: expected a non-empty list of tensors.")
    for i, t in enumerate(tensors):
        if t.ndim == 0:
            fail(ShapeError, "cat", f"tensor {i} is 0-d and cannot be joined; use stack().")
    first = next((t for t in tensors if not _is_skipped(t)), None)
    return tensors, 0 if first is None else wrap_dim("cat", dim, first.ndim, first.shape)


def _infer_cat(tensors: tuple[Spec, ...], dim: int) -> Spec:
    used = [t for t in tensors if not _is_skipped(t)] or [tensors[0]]
    first = used[0]
    for t in used:
        if t.ndim != first.ndim or any(
            a != b for i, (a, b) in enumerate(zip(t.shape, first.shape, strict=True)) if i != dim
        ):
            fail(
                ShapeError, "cat",
                f"sizes must match except in dimension {dim}, got {first.shape} and {t.shape}.",
            )  # fmt: skip
    shape = list(first.shape)
    shape[dim] = sum(t.shape[dim] for t in used)
    strides = agreed_strides(tuple(shape), used)
    return first.like(tuple(shape), dtype=_promoted(tensors), strides=strides)


def _pieces(g: Any, specs: tuple[Spec, ...], dim: int) -> list[Any]:
    if all(_is_skipped(x) for x in specs):
        return [g] * len(specs)
    used = iter(split_with_sizes(g, [x.shape[dim] for x in specs if not _is_skipped(x)], dim))
    empty = F.zeros((0,), dtype=g.dtype, device=g.device)
    return [empty if _is_skipped(x) else next(used) for x in specs]


structured(
    "cat(Tensor[] tensors, int dim=0)",
    canon=_canon_cat,
    infer=_infer_cat,
    grad={"tensors": lambda c, g: _pieces(g, c.spec("tensors"), c.dim)},
    method=False,
    aliases=("concat", "concatenate"),
    doc="""Join tensors along an existing dimension.

    >>> votive.cat([votive.tensor([1, 2]), votive.tensor([3])])
    tensor([1, 2, 3])
    """,
)


def _canon_stack(tensors: tuple[Spec, ...], dim: int) -> tuple[Any, ...]:
    if not tensors:
        fail(RuntimeError, "stack", "expected a non-empty list of tensors.")
    for t in tensors:
        if t.shape != tensors[0].shape:
            fail(ShapeError, "stack", f"shapes must be equal, got {tensors[0].shape}, {t.shape}.")
    return tensors, wrap_dim("stack", dim, tensors[0].ndim + 1)


def _infer_stack(tensors: tuple[Spec, ...], dim: int) -> Spec:
    shape, n = tensors[0].shape, len(tensors)
    strides = None
    if dim < len(shape):
        # As if joined along `dim`, which is then cut in two.
        size = shape[dim]
        joined = agreed_strides((*shape[:dim], n * size, *shape[dim + 1 :]), tensors)
        strides = (*joined[:dim], size * joined[dim], *joined[dim:])
    full = (*shape[:dim], n, *shape[dim:])
    return tensors[0].like(full, dtype=_promoted(tensors), strides=strides)


structured(
    "stack(Tensor[] tensors, int dim=0)",
    canon=_canon_stack,
    infer=_infer_stack,
    grad={"tensors": lambda c, g: g.unbind(c.dim)},
    method=False,
    doc="""Join tensors of one shape along a new dimension.

    >>> votive.stack([votive.tensor([1, 2]), votive.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """,
)


def _listed(op: str, tensors: Any) -> list[Any]:
    """A non-empty list of tensors."""
    if hasattr(tensors, "_spec"):
        raise TypeError(f"{op}: expected a list of tensors, got a Tensor.")
    out = list(tensors)
    if not out:
        fail(RuntimeError, op, "expected a non-empty list of tensors.")
    return out


@composite(method=False, out=True)
def hstack(tensors: Any) -> Any:
    """Join side by side: along dimension 1, or 0 for vectors.

    >>> votive.hstack((votive.tensor([1, 2]), votive.tensor([3])))
    tensor([1, 2, 3])
    """
    parts = F.atleast_1d(_listed("hstack", tensors))
    return F.cat(parts, 0 if parts[0].ndim == 1 else 1)


@composite(method=False, out=True, aliases=("row_stack",))
def vstack(tensors: Any) -> Any:
    """Join below each other: along dimension 0, vectors as rows.

    >>> votive.vstack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return F.cat(F.atleast_2d(_listed("vstack", tensors)), 0)


@composite(method=False, out=True)
def dstack(tensors: Any) -> Any:
    """Join behind each other: along dimension 2.

    >>> votive.dstack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[[1, 3],
             [2, 4]]])
    """
    return F.cat(F.atleast_3d(_listed("dstack", tensors)), 2)


@composite(method=False, out=True)
def column_stack(tensors: Any) -> Any:
    """Join side by side, vectors as columns.

    >>> votive.column_stack((votive.tensor([1, 2]), votive.tensor([3, 4])))
    tensor([[1, 3],
            [2, 4]])
    """
    parts = [
        F.reshape(t, (t._spec.numel, 1)) if t.ndim <= 1 else t
        for t in _listed("column_stack", tensors)
    ]
    return F.cat(parts, 1)


@composite(method=False)
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> votive.block_diag(votive.tensor([[1, 2]]), votive.tensor([3]))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, t in enumerate(tensors):
        if not hasattr(t, "_spec"):
            raise TypeError(f"block_diag: expected tensors, got {type(t).__name__}.")
        if t.ndim > 2:
            fail(ShapeError, "block_diag", f"tensor {i} has shape {t._spec.shape}; use 0..2 dims.")
    if not tensors:
        return F.zeros((1, 0))
    blocks = F.atleast_2d(tensors)
    width, left, rows = sum(b._spec.shape[1] for b in blocks), 0, []
    for b in blocks:
        w = b._spec.shape[1]
        rows.append(F.constant_pad_nd(b, (left, width - left - w)))
        left += w
    return F.cat(rows, 0)


def _cut(op: str, input: Any, dim: int) -> tuple[int, int]:
    """(dim, its size) of a tensor to be cut."""
    if input.ndim == 0:
        fail(RuntimeError, op, "expects at least one dimension, got a 0-d tensor.")
    dim = wrap_dim(op, dim, input.ndim, input._spec.shape)
    return dim, input._spec.shape[dim]


def _sized(x: Spec, dim: int, size: int) -> Spec:
    return x.like((*x.shape[:dim], size, *x.shape[dim + 1 :]))


structured(
    "_split(Tensor input, int[] sizes, int dim)",
    infer=lambda x, sizes, dim: tuple(_sized(x, dim, s) for s in sizes),
    grad={"input": lambda c, *g: F.cat(g, c.dim)},
    n_out=2, method=False, namespaces=(), out=False,
    doc="Copies of pieces that make up the whole; `split` gives views with this gradient.",
)  # fmt: skip

structured(
    "_unbind(Tensor input, int dim)",
    infer=lambda x, dim: (x.like(x.shape[:dim] + x.shape[dim + 1 :]),) * x.shape[dim],
    grad={"input": lambda c, *g: F.stack(g, c.dim)},
    n_out=2, method=False, namespaces=(), out=False,
    doc="Copies of the slices along a dimension; `unbind` gives views with this gradient.",
)  # fmt: skip


def _between(input: Any, dim: int, ends: list[int]) -> tuple[Any, ...]:
    """The pieces of a whole as views."""
    cuts = list(itertools.pairwise(ends))
    sizes = tuple([b - a for a, b in cuts])
    return F._views(input, "_split", (sizes, dim), "_slice", [(dim, a, b, 1) for a, b in cuts])


@composite
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
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
        fail(
            RuntimeError, op,
            f"sizes {sizes} must sum to {size}, the size of dimension {dim}, not to {sum(sizes)}.",
        )  # fmt: skip
    ends = [0]
    for s in sizes:
        ends.append(ends[-1] + s)
    return _between(input, dim, ends)


def _even(op: str, input: Any, step: int, dim: int) -> tuple[Any, ...]:
    dim, size = _cut(op, input, dim)
    if step < 0 or (step == 0 and size):
        fail(RuntimeError, op, f"split_size must be positive, got {step} for size {size}.")
    count = max(1, -(-size // step)) if step else 1
    return _between(input, dim, [*[i * step for i in range(count)], size])


@composite(method=False)
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of one size (the last may be smaller) or of given sizes, without copying.

    >>> votive.split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    given = split_size_or_sections
    if isinstance(given, (list, tuple)):
        return split_with_sizes(tensor, given, dim)
    return _even("split", tensor, int_of("split", "split_size", given), dim)


@composite(name="split", key="Tensor.split", namespaces=())
def split_method(input: Any, split_size: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut into pieces of one size (the last may be smaller) or of given sizes, without copying.

    >>> votive.tensor([1, 2, 3]).split(2)
    (tensor([1, 2]), tensor([3]))
    """
    return split(input, split_size, dim)


@composite
def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
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
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> tuple[Any, ...]:
    """`split`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return _even("unsafe_split", input, int_of("unsafe_split", "split_size", split_size), dim)


@composite
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> tuple[Any, ...]:
    """`split_with_sizes`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_split_with_sizes(votive.tensor([1, 2, 3]), (1, 2))
    (tensor([1]), tensor([2, 3]))
    """
    return split_with_sizes(input, split_sizes, dim)


@composite
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """`chunk`, under the name of torch's variant without its in-place guard.

    >>> votive.unsafe_chunk(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    return chunk(input, chunks, dim)


@composite
def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """The slices along a dimension as a tuple, without copying.

    >>> votive.unbind(votive.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    if input.ndim == 0:
        fail(DimError, "unbind", "a 0-d tensor has no dimension to remove.")
    dim = wrap_dim("unbind", dim, input.ndim, input._spec.shape)
    each = [(dim, i) for i in range(input._spec.shape[dim])]
    return F._views(input, "_unbind", (dim,), "select", each)


@composite
@also_called("indices_or_sections", "sections", "indices", "tensor_indices_or_sections")
def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cut at given indices, or into a number of nearly equal pieces, without copying.

    >>> votive.tensor_split(votive.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    op, given = "tensor_split", indices_or_sections
    dim, size = _cut(op, input, dim)
    if hasattr(given, "_spec"):
        if given.ndim > 1 or given.dtype.name != "int64":
            fail(
                RuntimeError,
                op,
                f"needs a 0-d or 1-d int64 tensor, got {given.dtype}, {given.ndim}-d.",
            )
        given = given.tolist()
    if isinstance(given, (list, tuple)):
        points = [0, *ints(op, "indices", given), size]
        starts = [min(max(p + size if p < 0 else p, 0), size) for p in points[:-1]]
        ends = [min(max(p + size if p < 0 else p, 0), size) for p in points[1:]]
        return tuple(
            [F._slice(input, dim, a, max(a, b), 1) for a, b in zip(starts, ends, strict=True)]
        )
    sections = int_of(op, "sections", given)
    if sections <= 0:
        fail(RuntimeError, op, f"the number of sections must be positive, got {sections}.")
    whole, extra = divmod(size, sections)
    return _between(input, dim, [i * whole + min(i, extra) for i in range(sections + 1)])


def _split_along(op: str, input: Any, given: Any, least: int, dim: int) -> tuple[Any, ...]:
    if input.ndim < least:
        fail(RuntimeError, op, f"needs at least {least} dimensions, got {input.ndim}.")
    if not isinstance(given, (list, tuple)):
        count, size = int_of(op, "sections", given), input._spec.shape[dim]
        if count <= 0 or size % count:
            fail(RuntimeError, op, f"size {size} of dimension {dim} is not divisible by {count}.")
    return tensor_split(input, given, dim)


@composite
@also_called("indices_or_sections", "sections", "indices")
def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Cut along dimension 1, or 0 for vectors.

    >>> votive.hsplit(votive.tensor([1, 2, 3, 4]), 2)
    (tensor([1, 2]), tensor([3, 4]))
    """
    return _split_along("hsplit", input, indices_or_sections, 1, 0 if input.ndim == 1 else 1)


@composite
@also_called("indices_or_sections", "sections", "indices")
def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Cut along dimension 0.

    >>> votive.vsplit(votive.tensor([[1], [2]]), 2)
    (tensor([[1]]), tensor([[2]]))
    """
    return _split_along("vsplit", input, indices_or_sections, 2, 0)


@composite
@also_called("indices_or_sections", "sections", "indices")
def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """Cut along dimension 2.

    >>> votive.dsplit(votive.tensor([[[1, 2]]]), 2)
    (tensor([[[1]]]), tensor([[[2]]]))
    """
    return _split_along("dsplit", input, indices_or_sections, 3, 2)
