"""Elements in other places: flip, rot90, roll, and padding with a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import DimError, ShapeError, fail
from ..core.layout import Spec, contiguous_strides, wrap_dim, wrap_dims
from ..core.memory_format import contiguous_format
from .copy import agreed_strides
from .registry import F, composite, structured
from .sizes import also_named, gathered, int_of, ints

if TYPE_CHECKING:
    from .types import Ints, Sequence, Tensor

structured(
    "_flip(Tensor input, int[] dims)",
    placement="along dim",
    multilinear=("input",),
    batch="dims",
    canon=lambda x, dims: (x, wrap_dims("flip", dims, x.ndim or 1, empty_is_all=False)),
    infer=lambda x, dims: x.dense_like(),
    grad={"input": lambda c, g: F._flip(g, c.dims)},
    moves=(0,),
    doc="A copy in which some dimensions run backwards.",
)


@composite
@also_named("dims")
def flip(input: Tensor, *dims: Ints) -> Tensor:
    """A copy in which some dimensions run backwards.

    >>> votive.flip(votive.tensor([[1, 2], [3, 4]]), (0,))
    tensor([[3, 4],
            [1, 2]])
    """
    return F._flip(input, gathered("flip", "dims", dims))


@composite
def fliplr(input: Tensor) -> Tensor:
    """A copy with the columns in reverse order.

    >>> votive.fliplr(votive.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input.ndim < 2:
        fail(RuntimeError, "fliplr", f"needs at least 2 dimensions, got {input.ndim}.")
    return F._flip(input, (1,))


@composite
def flipud(input: Tensor) -> Tensor:
    """A copy with the rows in reverse order.

    >>> votive.flipud(votive.tensor([1, 2]))
    tensor([2, 1])
    """
    if input.ndim < 1:
        fail(RuntimeError, "flipud", "needs at least 1 dimension, got 0.")
    return F._flip(input, (0,))


@composite
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turn by k quarter turns in the plane of two dimensions, from the first to the second.

    >>> votive.rot90(votive.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    plane = ints("rot90", "dims", dims)
    if len(plane) != 2:
        fail(RuntimeError, "rot90", f"needs two dimensions, got dims={plane}.")
    if input.ndim < 2:
        fail(RuntimeError, "rot90", f"needs a tensor of at least 2 dimensions, got {input.ndim}.")
    a, b = (wrap_dim("rot90", d, input.ndim, input._spec.shape) for d in plane)
    if a == b:
        fail(RuntimeError, "rot90", f"the two dimensions must differ, got dims={plane}.")
    turns = int_of("rot90", "k", k) % 4
    if turns == 0:
        return F.clone(input, memory_format=contiguous_format)
    if turns == 2:
        return F._flip(input, (a, b))
    return F.transpose(F._flip(input, (b if turns == 1 else a,)), a, b)


def _canon_roll(x: Spec, shifts: tuple[int, ...], dims: tuple[int, ...]) -> tuple[Any, ...]:
    if not shifts:
        fail(RuntimeError, "roll", "needs at least one shift.")
    if len(shifts) != len(dims) and (dims or len(shifts) > 1):
        fail(RuntimeError, "roll", f"shifts {shifts} and dims {dims} differ in length.")
    if dims and x.ndim == 0:
        fail(DimError, "roll", f"a 0-d tensor has no dimension {dims[0]}.")
    return x, shifts, tuple(wrap_dim("roll", d, x.ndim, x.shape) for d in dims)


structured(
    "roll(Tensor input, int[] shifts, int[] dims=())",
    placement="along dim",
    multilinear=("input",),
    batch="dims",
    canon=_canon_roll,
    infer=lambda x, shifts, dims: x.like(strides=agreed_strides(x.shape, [x]) if dims else contiguous_strides(x.shape)),
    grad={"input": lambda c, g: g.roll(tuple(-s for s in c.shifts), c.dims)},
    out=False,
    doc="""Shift elements along dimensions (or the flattened tensor); what leaves enters again.

    >>> votive.roll(votive.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """,
    moves=(0,),
)


def _infer_pad(x: Spec, pad: tuple[int, ...], value: float) -> Spec:
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        fail(
            RuntimeError,
            "constant_pad_nd",
            f"pad needs a pair for each of at most {x.ndim} dimensions, last first, got {pad}.",
        )
    shape = list(x.shape)
    for i in range(len(pad) // 2):
        d = x.ndim - 1 - i
        shape[d] += pad[2 * i] + pad[2 * i + 1]
        if shape[d] < 0 or x.shape[d] + min(pad[2 * i], 0) + min(pad[2 * i + 1], 0) < 0:
            fail(ShapeError, "constant_pad_nd", f"pad {pad} cuts more than the size {x.shape[d]} from dimension {d}.")
    return x.like(tuple(shape))


structured(
    "constant_pad_nd(Tensor input, int[] pad, Scalar value=0)",
    placement="padded",
    batch="same",
    infer=_infer_pad,
    grad={"input": lambda c, g: F.constant_pad_nd(g, tuple(-p for p in c.pad))},
    method=False,
    doc="""Add elements of one value around a tensor, or cut with negative numbers.

    `pad` holds (before, after) for the last dimension, then for the one before it, and so on.

    >>> votive.constant_pad_nd(votive.tensor([1, 2]), (1, 2), 9)
    tensor([9, 1, 2, 9, 9])
    """,
)
