"""Reading and writing along a dimension by an index tensor. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Shape, Spec, broadcast_shapes, wrap_dim
from ..formula import where
from .registry import F, composite, pointwise, structured

if TYPE_CHECKING:
    from .types import Number, Tensor


def check_index(op: str, index: Spec, kind: type[Exception] = DtypeError) -> None:
    """Indexes are int64 or int32; an empty one may have any type."""
    if index.numel and index.dtype not in (dt.int64, dt.int32):
        fail(kind, op, f"expected dtype int32/int64 for index, got {index.dtype}; use .long().")


def check_long(op: str, index: Spec, kind: type[Exception] = DtypeError) -> None:
    """Some operators take int64 only."""
    if index.dtype is not dt.int64:
        fail(kind, op, f"expected dtype int64 for index, got {index.dtype}; use .long().")


def check_same(op: str, x: Spec, source: Spec) -> None:
    """What is written has the type of what it is written into."""
    if source.dtype is not x.dtype:
        fail(DtypeError, op, f"input and source must have the same dtype, got {x.dtype} and {source.dtype}.")


pointwise(
    "_counted_from_zero(Operand index, Operand size)",
    lambda i, n: where(i < 0, i + n, i),
    allow="i",
    differentiable=False,
    doc="Indexes of which negative ones count from the end.",
)


def filled(shape: Shape) -> Shape:
    """A 0-d tensor counts as one with a single element."""
    return shape or (1,)


def blank(shape: Shape, like: Tensor) -> Tensor:
    """Zeros into which a gradient is collected."""
    if like._level:  # a batch of gradients needs as many zeros
        return like._blank(shape)
    return F.zeros(shape, dtype=like._spec.dtype, device=like._spec.device)


def _canon_gather(x: Spec, dim: int, *rest: Spec | Number) -> tuple[Any, ...]:
    return (x, wrap_dim("gather", dim, x.ndim, x.shape), *rest)


def _infer_gather(x: Spec, dim: int, index: Spec, sparse_grad: bool) -> Spec:
    check_index("gather", index)
    if index.numel:
        have, want = filled(x.shape), filled(index.shape)
        if len(have) != len(want):
            fail(ShapeError, "gather", f"index must have as many dimensions as input, got {index.ndim} and {x.ndim}.")
        for d, (n, m) in enumerate(zip(have, want, strict=True)):
            if d != dim and m > n:
                fail(
                    ShapeError,
                    "gather",
                    f"index {index.shape} must be no larger than input {x.shape} apart from "
                    f"dimension {dim}; it is at dimension {d}.",
                )
    return x.like(index.shape)


structured(
    "gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False)",
    placement="gather",
    multilinear=("input",),
    batch="dims",
    canon=_canon_gather,
    infer=_infer_gather,
    grad={"input": lambda c, g: blank(c.shape("input"), g).scatter_add_(c.dim, c.index, g)},
    doc="""Values picked along `dim`: `out[i][j] = input[index[i][j]][j]` for dim=0.

    >>> votive.gather(votive.tensor([[1, 2], [3, 4]]), 1, votive.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """,
    out_no_overlap=True,
    out_exact_dtype=True,
    moves=(0,),
)


@composite(out=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Values picked along `dim`, other dimensions broadcast; over the flat tensor without `dim`.

    >>> x = votive.tensor([[30, 10, 20]])
    >>> votive.take_along_dim(x, votive.argsort(x), dim=1)
    tensor([[10, 20, 30]])
    """
    op = "take_along_dim"
    check_long(op, indices._spec)
    if dim is None:
        input, indices, dim = F.reshape(input, -1), F.reshape(indices, -1), 0
    if input.ndim != indices.ndim:
        fail(
            ShapeError,
            op,
            f"input and indices must have the same number of dimensions, got {input.ndim} and {indices.ndim}.",
        )
    dim = wrap_dim(op, dim, input.ndim, input._spec.shape)
    sizes, wanted = list(input._spec.shape), list(indices._spec.shape)
    if sizes:
        length, picks = sizes[dim], wanted[dim]
        sizes[dim] = wanted[dim] = 1
        shape = list(broadcast_shapes(op, tuple(sizes), tuple(wanted)))
        shape[dim] = length
        input = F.expand(input, shape)
        shape[dim] = picks
        indices = F.expand(indices, shape)
    return F.gather(input, dim, F._counted_from_zero(indices, filled(input._spec.shape)[dim]))


def _infer_index_select(x: Spec, dim: int, index: Spec) -> Spec:
    op = "index_select"
    check_index(op, index)
    if index.ndim > 1:
        fail(IndexError, op, f"index must be a vector, got shape {index.shape}.")
    if x.ndim == 0:
        if index.numel != 1:
            fail(ShapeError, op, f"index into a 0-d tensor must have 1 value, got {index.numel}.")
        return x.like(())
    return x.like((*x.shape[:dim], index.numel, *x.shape[dim + 1 :]))


structured(
    "index_select(Tensor input, int dim, Tensor index)",
    placement="index select",
    multilinear=("input",),
    canon=lambda x, dim, index: (x, wrap_dim("index_select", dim, x.ndim, x.shape), index),
    infer=_infer_index_select,
    grad={"input": lambda c, g: blank(c.shape("input"), g).index_add_(c.dim, c.index, g)},
    doc="""The slices along `dim` that `index` names.

    >>> votive.index_select(votive.tensor([[1, 2], [3, 4]]), 1, votive.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """,
    out_no_overlap=True,
    moves=(0,),
)


def _check_slices(op: str, x: Spec, dim: int, index: Spec, source: Spec) -> None:
    """`source` holds one slice of `x` per index."""
    if index.ndim > 1:
        fail(IndexError, op, f"index must be a vector, got shape {index.shape}.")
    check_index(op, index)
    check_same(op, x, source)
    if source.ndim == 0 and index.numel != 1:
        fail(IndexError, op, f"a 0-d source needs one index, got {index.numel}.")
    if filled(source.shape)[min(dim, max(source.ndim, 1) - 1)] != index.numel:
        fail(
            ShapeError,
            op,
            f"the number of indices ({index.numel}) must equal the size of source {source.shape} at dimension {dim}.",
        )
    if x.ndim != source.ndim or _without(x.shape, dim) != _without(source.shape, dim):
        fail(
            ShapeError,
            op,
            f"the shape of source must match input apart from dimension {dim}, got {x.shape} and {source.shape}.",
        )


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _infer_index_add(x: Spec, dim: int, index: Spec, source: Spec, alpha: int) -> Spec:
    _check_slices("index_add", x, dim, index, source)
    return x.like(x.shape)


def _scaled(g: Tensor, alpha: int) -> Tensor:
    return g if alpha == 1 else g * alpha.conjugate()


structured(
    "index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1)",
    canon=lambda x, dim, *rest: (x, wrap_dim("index_add", dim, x.ndim, x.shape), *rest),
    infer=_infer_index_add,
    grad={"input": lambda c, g: g, "source": lambda c, g: _scaled(F.index_select(g, c.dim, c.index), c.alpha)},
    inplace=True,
    doc="""Add `alpha * source` to the slices along `dim` that `index` names; repeated ones add up.

    >>> votive.index_add(votive.zeros(3), 0, votive.tensor([0, 2, 2]), votive.ones(3))
    tensor([1., 0., 2.])
    """,
)


def _infer_index_copy(x: Spec, dim: int, index: Spec, source: Spec) -> Spec:
    op = "index_copy"
    if index.ndim > 1:
        fail(IndexError, op, f"index must have 0 or 1 dimensions, got shape {index.shape}.")
    if source.ndim == 0 and index.numel != 1:
        fail(IndexError, op, f"a 0-d source needs one index, got {index.numel}.")
    if x.ndim != source.ndim and x.ndim and source.ndim:
        fail(IndexError, op, f"source must have as many dimensions as input, got {source.ndim} and {x.ndim}.")
    check_long(op, index)
    check_same(op, x, source)
    if _without(x.shape, dim) != _without(source.shape, dim):
        fail(
            ShapeError,
            op,
            f"the shape of source must match input apart from dimension {dim}, got {x.shape} and {source.shape}.",
        )
    if source.ndim and index.numel != source.shape[dim]:
        fail(
            IndexError,
            op,
            f"the number of indices ({index.numel}) must equal the size of source {source.shape} at dimension {dim}.",
        )
    return x.like(x.shape)


def _picked(g: Tensor, dim: int, index: Tensor, shape: Shape) -> Tensor:
    """The slices of `g` that were written from a source of `shape`."""
    if g.ndim == 0:
        return F.expand(g, shape)
    return F.reshape(F.index_select(g, dim, index), shape)


structured(
    "index_copy(Tensor input, int dim, Tensor index, Tensor source)",
    canon=lambda x, dim, *rest: (x, wrap_dim("index_copy", dim, x.ndim, x.shape), *rest),
    infer=_infer_index_copy,
    grad={
        "input": lambda c, g: F.index_fill(g, c.dim, c.index, 0),
        "source": lambda c, g: _picked(g, c.dim, c.index, c.shape("source")),
    },
    inplace=True,
    doc="""Overwrite the slices along `dim` that `index` names with those of `source`.

    >>> votive.index_copy(votive.zeros(3), 0, votive.tensor([2, 0]), votive.tensor([5.0, 6.0]))
    tensor([6., 0., 5.])
    """,
    autocast={"cpu": "widest"},
    moves=(0, 3),
)


def _infer_index_fill(x: Spec, dim: int, index: Spec, value: Spec | Number) -> Spec:
    op = "index_fill"
    check_long(op, index, IndexError)
    if index.ndim > 1:
        fail(ShapeError, op, f"index must be a vector or 0-d, got shape {index.shape}.")
    if isinstance(value, Spec) and value.ndim:
        fail(ShapeError, op, f"a value tensor must be 0-d, got shape {value.shape}.")
    if not x.dtype.is_complex and (value.dtype.is_complex if isinstance(value, Spec) else isinstance(value, complex)):
        fail(DtypeError, op, f"a complex value does not fit into {x.dtype}.")
    return x.like(x.shape)


def _filled_sum(g: Tensor, dim: int, index: Tensor) -> Tensor:
    """The sum over slices that were filled; one that is named twice was filled once."""
    size = filled(g._spec.shape)[dim]
    return F.index_select(g, dim, F.unique(F.where(index < 0, index + size, index))).sum()


structured(
    "index_fill(Tensor input, int dim, Tensor index, Operand value)",
    canon=lambda x, dim, *rest: (x, wrap_dim("index_fill", dim, x.ndim, x.shape), *rest),
    infer=_infer_index_fill,
    grad={
        "input": lambda c, g: F.index_fill(g, c.dim, c.index, 0),
        "value": lambda c, g: _filled_sum(g, c.dim, c.index),
    },
    inplace=True,
    doc="""Fill the slices along `dim` that `index` names with one value.

    >>> votive.index_fill(votive.zeros(2, 2), 1, votive.tensor([0]), 7)
    tensor([[7., 0.],
            [7., 0.]])
    """,
)


@composite(inplace=True, out=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine slices of `source` into those along `dim` that `index` names.

    `reduce` is "prod", "mean", "amax" or "amin"; without `include_self` old values do not count.

    >>> index = votive.tensor([1, 1])
    >>> votive.index_reduce(votive.ones(2), 0, index, votive.tensor([2.0, 4.0]), "prod")
    tensor([1., 8.])
    """
    op = "index_reduce"
    if reduce not in ("prod", "mean", "amax", "amin"):
        fail(RuntimeError, op, f"reduce must be prod, mean, amax or amin, got {reduce!r}.")
    x = input._spec
    dim = wrap_dim(op, dim, x.ndim, x.shape)
    _check_slices(op, x, dim, index._spec, source._spec)
    if x.dtype is dt.bool_ and reduce == "mean":
        raise UnsupportedError(f"{op}: mean is not implemented for bool tensors.")
    shape = [1] * max(x.ndim, 1)
    shape[dim] = -1
    lined = F.expand(F.reshape(index, *shape), filled(source._spec.shape))
    try:
        return F.scatter_reduce(input, dim, lined, source, reduce, include_self=include_self)
    except RuntimeError as e:
        if "out of bounds" in str(e):
            fail(IndexError, op, str(e).partition(": ")[2])
        raise


def _infer_take(x: Spec, index: Spec) -> Spec:
    check_long("take", index)
    if x.numel == 0 and index.numel:
        fail(IndexError, "take", "tried to take from an empty tensor.")
    return x.like(index.shape)


structured(
    "take(Tensor input, Tensor index)",
    infer=_infer_take,
    grad={"input": lambda c, g: blank(c.shape("input"), g).put_(c.index, g, True)},
    doc="""Values of the flattened tensor at the given positions.

    >>> votive.take(votive.tensor([[4, 3], [2, 1]]), votive.tensor([0, -1]))
    tensor([4, 1])
    """,
    out_no_overlap=True,
    moves=(0,),
)


def _infer_put(x: Spec, index: Spec, source: Spec, accumulate: bool) -> Spec:
    check_long("put", index)
    check_same("put", x, source)
    if source.numel != index.numel:
        fail(
            IndexError,
            "put",
            f"source and index must have the same number of elements, got {source.numel} and {index.numel}.",
        )
    if x.numel == 0 and index.numel:
        fail(IndexError, "put", "tried to put elements into an empty tensor.")
    return x.like(x.shape)


structured(
    "put(Tensor input, Tensor index, Tensor source, bool accumulate=False)",
    infer=_infer_put,
    grad={
        "input": lambda c, g: g if c.accumulate else F.put(g, c.index, blank(c.shape("source"), g)),
        "source": lambda c, g: F.reshape(F.take(g, c.index), c.shape("source")),
    },
    inplace=True,
    out=False,
    doc="""Write values at positions of the flattened tensor, or add them.

    >>> votive.put(votive.zeros(2, 2), votive.tensor([0, 3]), votive.tensor([1.0, 2.0]))
    tensor([[1., 0.],
            [0., 2.]])
    """,
)
