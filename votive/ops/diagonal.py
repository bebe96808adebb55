"""Diagonals and triangles: diag, diagonal, tril, triu, trace and kin. Knows layouts, not bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Spec, wrap_dim
from ..core.memory_format import contiguous_format
from .registry import F, composite, structured, view
from .sizes import int_of
from .strided import from_window

if TYPE_CHECKING:
    from .types import Callable, Number, Tensor


def _planes(op: str, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    """Two different dimensions, wrapped."""
    a, b = wrap_dim(op, dim1, ndim), wrap_dim(op, dim2, ndim)
    if a == b:
        fail(RuntimeError, op, f"the two dimensions must differ, got {dim1} and {dim2}.")
    return a, b


def _infer_diagonal(x: Spec, offset: int, dim1: int, dim2: int) -> tuple[Spec, int]:
    rows, cols = x.shape[dim1], x.shape[dim2]
    length = max(0, min(rows + min(offset, 0), cols - max(offset, 0)))
    shift = offset * x.strides[dim2] if offset >= 0 else -offset * x.strides[dim1]
    rest = [i for i in range(x.ndim) if i not in (dim1, dim2)]
    return x.like(
        (*[x.shape[i] for i in rest], length),
        strides=(*[x.strides[i] for i in rest], x.strides[dim1] + x.strides[dim2]),
    ), shift if length else 0


view(
    "diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)",
    placement="diagonal",
    batch="dims",
    canon=lambda x, offset, dim1, dim2: (x, offset, *_planes("diagonal", dim1, dim2, x.ndim)),
    infer=_infer_diagonal,
    grad={"input": lambda c, g: from_window(g, c.shape("input"), "diagonal", c.offset, c.dim1, c.dim2)},
    doc="""The diagonal of two dimensions as the last one, without copying.

    >>> votive.diagonal(votive.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)


@composite
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Put the last dimension on the diagonal of two new ones.

    >>> votive.diag_embed(votive.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    a, b = _planes("diag_embed", dim1, dim2, input.ndim + 1)
    offset = int_of("diag_embed", "offset", offset)
    size = input.size(-1) + abs(offset)
    rest = iter(input._spec.shape[:-1])
    shape = tuple([size if i in (a, b) else next(rest) for i in range(input.ndim + 1)])
    return from_window(input, shape, "diagonal", offset, a, b)


@composite(out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with this vector on its diagonal, or a copy of this matrix's diagonal.

    >>> votive.diag(votive.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        fail(RuntimeError, "diag", f"needs 1 or 2 dimensions, got shape {input._spec.shape}.")
    view = F.diagonal(input, diagonal)
    return F.clone(view, memory_format=contiguous_format)


@composite
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of the input on its diagonal.

    >>> votive.diagflat(votive.tensor([[1], [2]]))
    tensor([[1, 0],
            [0, 2]])
    """
    return diag_embed(F.reshape(input, -1), offset)


@composite(out=True, autocast={"cpu": "float32", "cuda": "off"})
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal.

    >>> votive.trace(votive.tensor([[1, 2], [3, 4]]))
    tensor(5)
    """
    if input.ndim != 2:
        fail(RuntimeError, "trace", f"expected a matrix, got shape {input._spec.shape}.")
    if input.dtype is dt.bool_:
        fail(UnsupportedError, "trace", "not implemented for votive.bool.")
    return F.sum(F.diagonal(input))


def _infer_triangle(op: str) -> Callable[..., Any]:
    def infer(x: Spec, diagonal: int) -> Spec:
        if x.ndim < 2:
            fail(ShapeError, op, f"needs at least 2 dimensions, got shape {x.shape}.")
        return x.like(x.shape)

    return infer


structured(
    "tril(Tensor input, int diagonal=0)",
    placement="matrices",
    batch="same",
    infer=_infer_triangle("tril"),
    grad={"input": lambda c, g: g.tril(c.diagonal)},
    inplace=True,
    doc="""The lower triangle: elements above the given diagonal become 0.

    >>> votive.tril(votive.tensor([[1, 2], [3, 4]]))
    tensor([[1, 0],
            [3, 4]])
    """,
)

structured(
    "triu(Tensor input, int diagonal=0)",
    placement="matrices",
    batch="same",
    infer=_infer_triangle("triu"),
    grad={"input": lambda c, g: g.triu(c.diagonal)},
    inplace=True,
    doc="""The upper triangle: elements below the given diagonal become 0.

    >>> votive.triu(votive.tensor([[1, 2], [3, 4]]))
    tensor([[1, 2],
            [0, 4]])
    """,
)


@composite(namespaces=())
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Overwrite the main diagonal; `wrap` starts again below it in tall matrices.

    >>> votive.zeros(2, 2).fill_diagonal_(3)
    tensor([[3., 0.],
            [0., 3.]])
    """
    shape, strides = input._spec.shape, input._spec.strides
    if len(shape) < 2:
        fail(RuntimeError, "fill_diagonal_", f"needs at least 2 dimensions, got shape {shape}.")
    if len(shape) > 2 and len(set(shape)) > 1:
        fail(RuntimeError, "fill_diagonal_", f"all sizes must be equal, got shape {shape}.")
    length, step = min(shape), sum(strides)
    F._as_strided(input, (length,), (step,), 0).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        period = shape[1] + 1
        more = -(-input._spec.numel // period) - length
        F._as_strided(input, (more,), (step,), strides[0] * period).fill_(fill_value)
    return input
