"""Reading and writing at positions that tensors give for several dimensions. Knows shapes only."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DimError, DtypeError, ShapeError, fail, received
from ..core.layout import Shape, Spec, broadcast_shapes
from .index import blank
from .registry import OPS, F, Op, composite, structured

if TYPE_CHECKING:
    from .types import Sequence, Tensor

_INDEX_TYPES = (dt.int64, dt.int32, dt.bool_, dt.uint8)


def as_tensor_index(part: Tensor) -> Tensor:
    """A tensor that may stand in an index; uint8 is an old name for a mask."""
    if part.dtype.category > dt.INT or (part.ndim and part.dtype not in _INDEX_TYPES):
        fail(IndexError, "indexing", f"tensors used as indices must be int64, int32 or bool tensors, got {part.dtype}.")
    if part.dtype is dt.uint8:
        warnings.warn("indexing with uint8 masks is deprecated; use a bool tensor.", stacklevel=5)
        part = part.bool()
    return part


def is_mask(part: Any) -> bool:
    return hasattr(part, "_spec") and part.dtype is dt.bool_


def check_mask(mask: Tensor, shape: Shape, d: int) -> None:
    for k, n in enumerate(mask.shape):
        if n != shape[d + k]:
            fail(
                IndexError,
                "indexing",
                f"the shape of the mask {tuple(mask.shape)} at index {k} does not match the shape "
                f"of the indexed tensor {shape} at index {d + k}.",
            )


def positions(tensors: list[tuple[int, Any]]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Integer tensors and their dimensions; a mask becomes one tensor per dimension of it."""
    found: list[Any] = []
    dims: list[int] = []
    for d, part in tensors:
        columns = F.nonzero(part, as_tuple=True) if is_mask(part) else (part,)
        found.extend(columns)
        dims.extend(range(d, d + len(columns)))
    return tuple(found), tuple(dims)


def indexed_shape(op: str, shape: Shape, indices: tuple[Spec, ...], dims: tuple[int, ...]) -> Shape:
    """Where the indexed dimensions stood side by side the index's shape stands, else in front."""
    for i in indices:
        if i.dtype not in (dt.int64, dt.int32):
            fail(IndexError, op, f"indices must be int64 or int32 tensors, got {i.dtype}.")
    try:
        common = broadcast_shapes(op, *(i.shape for i in indices))
    except ShapeError as e:
        fail(IndexError, op, "shape mismatch: " + str(e).partition(": ")[2])
    kept = tuple(n for d, n in enumerate(shape) if d not in dims)
    at = dims[0] if dims == tuple(range(dims[0], dims[0] + len(dims))) else 0
    return kept[:at] + common + kept[at:]


structured(
    "_index(Tensor input, Tensor[] indices, int[] dims)",
    placement="indexed",
    infer=lambda x, indices, dims: x.like(indexed_shape("indexing", x.shape, indices, dims)),
    grad={
        "input": lambda c, g: Op.write(
            OPS["_index_put"], (blank(c.shape("input"), g), tuple(c.indices), c.dims, g, True)
        )
    },
    doc="The values at positions that tensors give for some dimensions.",
    moves=(0,),
)


def _infer_index_put(x: Spec, indices: tuple[Spec, ...], dims: tuple[int, ...], values: Spec, accumulate: bool) -> Spec:
    op = "index_put"
    shape = indexed_shape(op, x.shape, indices, dims)
    if values.dtype is not x.dtype:
        fail(DtypeError, op, f"the dtypes of input and values must match, got {x.dtype} and {values.dtype}.")
    lead = len(shape) - values.ndim
    if lead < 0 or any(n not in (1, m) for n, m in zip(values.shape, shape[max(lead, 0) :], strict=False)):
        fail(
            ShapeError,
            op,
            f"shape mismatch: values of shape {values.shape} cannot be broadcast to the indexing "
            f"result of shape {shape}.",
        )
    return x.like(x.shape)


structured(
    "_index_put(Tensor input, Tensor[] indices, int[] dims, Tensor values, bool accumulate)",
    infer=_infer_index_put,
    grad={
        "input": lambda c, g: g if c.accumulate else F._index_put(g, tuple(c.indices), c.dims, blank((), g), False),
        "values": lambda c, g: F._index(g, tuple(c.indices), c.dims),
    },
    doc="Write, or add, values at positions that tensors give for some dimensions.",
    moves=(0, 3),
)


def _read_indices(
    op: str, input: Tensor, indices: Tensor | Sequence[Tensor]
) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The argument of `index_put`: tensors for the first dimensions."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"{op}: indices must be a tuple of Tensors, got {received(indices)}.")
    tensors: list[tuple[int, Any]] = []
    d, shape = 0, input._spec.shape
    for part in indices:
        if not hasattr(part, "_spec"):
            raise TypeError(f"{op}: indices must be Tensors, got {received(part)}.")
        part = as_tensor_index(part)
        if d + (part.ndim if is_mask(part) else 1) > len(shape):
            fail(DimError, op, f"too many indices for tensor of dimension {len(shape)}.")
        if is_mask(part):
            check_mask(part, shape, d)
        tensors.append((d, part))
        d += part.ndim if is_mask(part) else 1
    if not tensors:
        fail(RuntimeError, op, "at least one index is needed.")
    return positions(tensors)


@composite(out=False, autocast={"cuda": "widest"})
def index_put(input: Tensor, indices: Tensor | Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy with `values` written, or added, at the positions that a tuple of tensors gives.

    >>> votive.index_put(votive.zeros(3), (votive.tensor([0, 2]),), votive.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    return F._index_put(input, *_read_indices("index_put", input, indices), values, accumulate)


@composite(name="index_put_")
def index_put_(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of `index_put`.

    >>> votive.zeros(3).index_put_((votive.tensor([1, 1]),), votive.ones(2), accumulate=True)
    tensor([0., 2., 0.])
    """
    read = _read_indices("index_put_", input, indices)
    return Op.write(OPS["_index_put"], (input, *read, values, accumulate))
