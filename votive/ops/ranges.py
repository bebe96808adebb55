"""Values that follow a rule: arange, linspace, logspace, grids, index triangles, combinations."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, devices_differ, fail
from ..core.layout import Layout, Spec
from .options import deliver, finish, number, options, out_dtype, tensor_options
from .registry import OPS, F, Resolved, composite, structured
from .schema import is_tensor
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Device, Number, Operand, Tensor, TensorOptions, Unpack, dtype

structured(
    "_arange(Scalar start, Scalar step, int size, dtype dtype, any device)",
    infer=lambda start, step, size, dtype, device: Spec(Layout((size,)), dtype, device),
    differentiable=False,
    doc="start + i·step for i < size.",
)

structured(
    "_linspace(Scalar start, Scalar end, int steps, dtype dtype, any device)",
    infer=lambda start, end, steps, dtype, device: Spec(Layout((steps,)), dtype, device),
    differentiable=False,
    doc="`steps` numbers at equal distances, from both ends towards the middle.",
)

structured(
    "_logspace(Scalar start, Scalar end, int steps, float base, dtype dtype, any device)",
    infer=lambda start, end, steps, base, dtype, device: Spec(Layout((steps,)), dtype, device),
    differentiable=False,
    doc="`base` to the power of `_linspace`.",
)


def _bound(op: str, name: str, value: Operand) -> Any:
    """An end of a range as a Python number."""
    if is_tensor(value) and value.ndim:
        fail(RuntimeError, op, f"{name} must be a number or 0-d, got shape {value._spec.shape}.")
    return number(op, name, value)


def range_length(start: int, end: float, step: float, dtype: dt.dtype) -> int:
    """How many numbers `arange` gives."""
    for value in (start, end, step):
        if isinstance(value, complex):
            fail(RuntimeError, "arange", f"complex numbers have no order, got {value}.")
    if step == 0:
        fail(RuntimeError, "arange", "step must not be 0.")
    whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    if not whole and not (math.isfinite(start) and math.isfinite(end)):
        fail(RuntimeError, "arange", f"the range from {start} to {end} is not finite.")
    if (end - start) * (1 if step > 0 else -1) < 0:
        fail(RuntimeError, "arange", f"step {step} leads away from the end: {start} to {end}.")
    if dtype is dt.int64 or whole:
        # An integer stays what it is: it may be more than an int, see compiler/symbols.py.
        start, end, step = (v if isinstance(v, int) else int(v) for v in (start, end, step))
        if step == 0:
            raise ValueError("arange: step must not be 0 once it is an integer.")
        return max(0, -((start - end) // step))
    return max(0, math.ceil((float(end) - float(start)) / float(step)))


def _arange_shortcut(*given: int, dtype: dtype | None = None) -> Resolved:
    wanted, place = options("arange", {"dtype": dtype or dt.int64})
    if any(v.__class__ is not int for v in given) or wanted.category not in (dt.INT, dt.FLOAT):
        return None
    first, last, by = (0, *given, 1) if len(given) == 1 else (*given, 1)[:3]
    return OPS["_arange"], (first, by, range_length(first, last, by, wanted), wanted, place)


@composite(method=False, shortcut=_arange_shortcut)
@tensor_options()
def arange(
    start: Operand | None = None,
    end: Operand | None = None,
    step: Operand = 1,
    *,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Numbers from start (0) up to but without end: start + i·step.

    Integers give int64; any float among the arguments gives the default dtype.

    >>> votive.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if end is None:
        if start is None:
            raise TypeError("arange: missing argument 'end'.")
        start, end = 0, start
    bounds = (0 if start is None else start, end, step)
    first, last, by = (number("arange", n, v) for n, v in zip(("start", "end", "step"), bounds, strict=True))
    default = dt.int64 if all(isinstance(v, int) for v in (first, last, by)) else None
    wanted, place = options("arange", out_dtype("arange", out, given), default=default)
    if wanted.category in (dt.BOOL, dt.COMPLEX):
        fail(UnsupportedError, "arange", f"not implemented for {wanted}.")
    size = range_length(first, last, by, wanted)
    if out is not None and out._spec.numel not in (0, size):
        warnings.warn(
            f"arange: out of shape {out._spec.shape} was resized to ({size},); pass an empty "
            "tensor or one of the right shape.",
            UserWarning,
            stacklevel=2,
        )
    return deliver(F._arange(first, by, size, wanted, place), out, given)


def _spaced(
    op: str, start: Operand, end: Operand, steps: int, out: Tensor | None, given: TensorOptions
) -> tuple[Number, Number, int, dt.dtype, Device]:
    """Checked arguments of linspace and logspace."""
    first, last = _bound(op, "start", start), _bound(op, "end", end)
    steps = int_of(op, "steps", steps)
    if steps < 0:
        fail(RuntimeError, op, f"the number of steps must not be negative, got {steps}.")
    default = dt.get_default_dtype()
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    if is_complex:
        default = default.to_complex()
    wanted, place = options(op, out_dtype(op, out, given), default=default)
    if is_complex and not wanted.is_complex:
        fail(DtypeError, op, f"complex ends do not fit into {wanted}.")
    if wanted is dt.bool_:
        fail(UnsupportedError, op, f"not implemented for {wanted}.")
    return first, last, steps, wanted, place


@composite(method=False)
@tensor_options()
def linspace(
    start: Operand, end: Operand, steps: int, *, out: Tensor | None = None, **given: Unpack[TensorOptions]
) -> Tensor:
    """`steps` numbers at equal distances from start to end, both included.

    >>> votive.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    first, last, n, wanted, place = _spaced("linspace", start, end, steps, out, given)
    return deliver(F._linspace(first, last, n, wanted, place), out, given)


@composite(method=False)
@tensor_options()
def logspace(
    start: Operand,
    end: Operand,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """`steps` numbers at equal ratios from base^start to base^end, both included.

    >>> votive.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    first, last, n, wanted, place = _spaced("logspace", start, end, steps, out, given)
    if isinstance(base, complex):
        raise TypeError("logspace: base must be a real number.")
    return deliver(F._logspace(first, last, n, base, wanted, place), out, given)


def triangle_count(row: int, col: int, offset: int) -> int:
    """How many elements lie on or below a diagonal."""
    top = min(row, max(0, -offset))  # rows above the diagonal's first element
    grow = min(row, max(top, col - offset))  # rows until the triangle is as wide as the matrix
    first, last = 1 + top + offset, grow + offset
    return (grow - top) * (first + last) // 2 + (row - grow) * col


def _infer_triangle(row: int, col: int, offset: int, lower: bool, dtype: dt.dtype, device: Device) -> Spec:
    below = triangle_count(row, col, offset if lower else offset - 1)
    return Spec(Layout((2, below if lower else row * col - below)), dtype, device)


structured(
    "_triangle(int row, int col, int offset, bool lower, dtype dtype, any device)",
    infer=_infer_triangle,
    differentiable=False,
    doc="Row and column indices of a triangle.",
)


def _triangle(op: str, lower: bool, row: int, col: int, offset: int, given: TensorOptions) -> Tensor:
    row, col, offset = (int_of(op, n, v) for n, v in zip(("row", "col", "offset"), (row, col, offset), strict=True))
    if row < 0 or col < 0:
        fail(RuntimeError, op, f"row and col must not be negative, got {row} and {col}.")
    wanted, place = options(op, given, default=dt.int64)
    if wanted.category != dt.INT:
        fail(UnsupportedError, op, f"not implemented for {wanted}; use an integer dtype.")
    return finish(F._triangle(row, col, offset, lower, wanted, place), given)


@composite(method=False)
@tensor_options()
def tril_indices(row: int, col: int, offset: int = 0, **given: Unpack[TensorOptions]) -> Tensor:
    """Row and column indices of the lower triangle of a row-by-col matrix.

    >>> votive.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _triangle("tril_indices", True, row, col, offset, given)


@composite(method=False)
@tensor_options()
def triu_indices(row: int, col: int, offset: int = 0, **given: Unpack[TensorOptions]) -> Tensor:
    """Row and column indices of the upper triangle of a row-by-col matrix.

    >>> votive.triu_indices(2, 2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return _triangle("triu_indices", False, row, col, offset, given)


@composite(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Any, ...]:
    """Grids of coordinates from vectors, as views; "xy" swaps the first two dimensions.

    >>> a, b = votive.meshgrid(votive.tensor([1, 2]), votive.tensor([3, 4]), indexing="ij")
    >>> a
    tensor([[1, 1],
            [2, 2]])
    """
    if len(tensors) == 1 and not hasattr(tensors[0], "_spec"):
        tensors = tuple(tensors[0])
    if not tensors:
        fail(RuntimeError, "meshgrid", "expected at least one tensor.")
    for t in tensors:
        if t.ndim > 1:
            fail(ShapeError, "meshgrid", f"expected 0-d or 1-d tensors, got shape {t._spec.shape}.")
        if t.dtype is not tensors[0].dtype:
            fail(DtypeError, "meshgrid", f"dtypes differ: {tensors[0].dtype} and {t.dtype}.")
        if t.device != tensors[0].device:
            devices_differ("meshgrid", tensors[0].device, t.device)
    if indexing not in (None, "ij", "xy"):
        fail(RuntimeError, "meshgrid", f"indexing must be 'ij' or 'xy', got {indexing!r}.")
    swapped = indexing == "xy" and len(tensors) >= 2
    if swapped:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    n = len(tensors)
    shape = tuple([t._spec.numel for t in tensors])
    grids = []
    for i, t in enumerate(tensors):
        column = F._view(t, (1,) * i + (t._spec.numel,) + (1,) * (n - 1 - i))
        grids.append(F._expand(column, shape))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@composite(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element from each vector, as rows.

    >>> votive.cartesian_prod(votive.tensor([1, 2]), votive.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for t in tensors:
        if t.ndim != 1:
            fail(ShapeError, "cartesian_prod", f"expected vectors, got shape {t._spec.shape}.")
    if len(tensors) == 1:
        return tensors[0]
    return F.stack([F.flatten(g) for g in meshgrid(*tensors, indexing="ij")], 1)


def _infer_choose(n: int, r: int, with_replacement: bool, device: Device) -> Spec:
    count = math.comb(n + r - 1, r) if with_replacement else math.comb(n, r)
    return Spec(Layout((count if n else 0, r)), dt.int64, device)


structured(
    "_choose(int n, int r, bool with_replacement, any device)",
    infer=_infer_choose,
    differentiable=False,
    doc="Indices of all combinations of r out of n, in lexicographic order.",
)


@composite
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of r elements of a vector, as rows in the order of the vector.

    >>> votive.combinations(votive.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.ndim != 1:
        fail(ShapeError, "combinations", f"expected a vector, got shape {input._spec.shape}.")
    r = int_of("combinations", "r", r)
    if r < 0:
        fail(RuntimeError, "combinations", f"r must not be negative, got {r}.")
    if r == 0:
        return F.empty((0,), dtype=input.dtype, device=input.device)
    rows = F._choose(input._spec.numel, r, with_replacement, input.device)
    return F._view(F.index_select(input, 0, F._view(rows, (-1,))), rows._spec.shape)


@composite(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector as columns, the highest first unless `increasing`.

    >>> votive.vander(votive.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        fail(RuntimeError, "vander", f"expected a vector, got shape {x._spec.shape}.")
    n = x._spec.numel if N is None else int_of("vander", "N", N)
    if n < 0:
        fail(RuntimeError, "vander", f"N must not be negative, got {n}.")
    powers = F.arange(n, device=x.device)
    return F.pow(F.unsqueeze(x, 1), powers if increasing else F.flip(powers, 0))
