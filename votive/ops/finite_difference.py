"""Derivatives of sampled functions: gradient, by finite differences of second order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import wrap_dim
from .options import number
from .registry import F, composite
from .schema import is_tensor
from .sizes import int_of, ints

if TYPE_CHECKING:
    from .types import Ints, Number, Operand, Tensor

_OP = "gradient"


def _dims(input: Tensor, dim: Ints | None) -> list[int]:
    if dim is None:
        return list(range(input.ndim))
    dims = [wrap_dim(_OP, d, input.ndim, input._spec.shape) for d in ints(_OP, "dim", dim)]
    if len(set(dims)) != len(dims):
        fail(RuntimeError, _OP, f"a dimension appears twice in dim={dim}.")
    return dims


def _spacings(spacing: Any, count: int) -> list[Any]:
    """A number or a vector of coordinates for each dimension."""
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else number(_OP, "spacing", spacing)] * count
    if len(spacing) != count:
        fail(RuntimeError, _OP, f"spacing must have {count} items, one a dimension; got {spacing}.")
    coordinates = [s for s in spacing if hasattr(s, "_spec")]
    if coordinates and len(coordinates) != count:
        raise TypeError(f"{_OP}: spacing must hold numbers only or tensors only.")
    for s in coordinates:
        if s.ndim != 1:
            fail(ShapeError, _OP, f"coordinates must be vectors, got shape {tuple(s.shape)}.")
    return list(spacing) if coordinates else [number(_OP, "spacing", s) for s in spacing]


def _cut(t: Tensor, dim: int, start: int, end: int) -> Tensor:
    return F._slice(t, dim, start, end, 1)


def _even(x: Tensor, dim: int, n: int, step: Number, edge_order: int) -> list[Any]:
    """Derivatives at the first, the inner and the last points, samples being `step` apart."""
    inner = (_cut(x, dim, 2, n) - _cut(x, dim, 0, n - 2)) / (2 * step)
    if edge_order == 1:
        first = _cut(x, dim, 1, 2) - _cut(x, dim, 0, 1)
        last = _cut(x, dim, n - 1, n) - _cut(x, dim, n - 2, n - 1)
    else:
        a, b, c = (_cut(x, dim, i, i + 1) for i in range(3))
        first = -1.5 * a + 2 * b - 0.5 * c
        a, b, c = (_cut(x, dim, n - i, n - i + 1) for i in (3, 2, 1))
        last = 0.5 * a - 2 * b + 1.5 * c
    return [first / step, inner, last / step]


def _uneven(x: Tensor, dim: int, n: int, at: Tensor, edge_order: int) -> list[Any]:
    """The same for samples at given coordinates."""
    if at.shape[0] != n:
        fail(ShapeError, _OP, f"dim {dim} has {n} points, got {at.shape[0]} coordinates.")
    step = F.diff(at).view([-1 if d == dim else 1 for d in range(x.ndim)])
    left, right = _cut(step, dim, 0, n - 2), _cut(step, dim, 1, n - 1)
    # The parabola through three neighbours, differentiated at the middle one.
    inner = (
        -right / (left * (left + right)) * _cut(x, dim, 0, n - 2)
        + (right - left) / (left * right) * _cut(x, dim, 1, n - 1)
        + left / (right * (left + right)) * _cut(x, dim, 2, n)
    )
    if edge_order == 1:
        first = (_cut(x, dim, 1, 2) - _cut(x, dim, 0, 1)) / _cut(step, dim, 0, 1)
        last = (_cut(x, dim, n - 1, n) - _cut(x, dim, n - 2, n - 1)) / _cut(step, dim, n - 2, n - 1)
        return [first, inner, last]

    def outer(points: tuple[int, int, int], steps: tuple[int, int]) -> Tensor:
        """The same parabola's derivative at the outermost of three points."""
        a, b, c = (_cut(x, dim, i, i + 1) for i in points)
        p, q = (_cut(step, dim, i, i + 1) for i in steps)
        return -(2 * p + q) / (p * (p + q)) * a + (p + q) / (p * q) * b - p / (q * (p + q)) * c

    last = outer((n - 1, n - 2, n - 3), (n - 2, n - 3))
    return [outer((0, 1, 2), (0, 1)), inner, -last]


def _along(x: Tensor, dim: int, spacing: Operand, edge_order: int) -> Tensor:
    n = x._spec.shape[dim]
    if n < edge_order + 1:
        fail(RuntimeError, _OP, f"dim {dim} has {n} points; edge_order needs {edge_order + 1}.")
    if is_tensor(spacing):
        return F.cat(_uneven(x, dim, n, spacing, edge_order), dim)
    return F.cat(_even(x, dim, n, spacing, edge_order), dim)


@composite(method=False)
def gradient(input: Tensor, *, spacing: Any = 1, dim: Ints | None = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative of sampled values along each dimension, by central differences.

    `spacing` is the distance of samples, or per dimension a distance or a vector of coordinates.
    At the ends the difference is one-sided, of order `edge_order`.

    >>> votive.gradient(votive.tensor([1.0, 2.0, 4.0, 7.0]))
    (tensor([1.0000, 1.5000, 2.5000, 3.0000]),)
    """
    edge_order = int_of(_OP, "edge_order", edge_order)
    if edge_order not in (1, 2):
        fail(RuntimeError, _OP, f"edge_order must be 1 or 2, got {edge_order}.")
    if input.dtype is dt.uint8:
        fail(DtypeError, _OP, "differences of uint8 would wrap around; cast the input first.")
    dims = _dims(input, dim)
    spacings = _spacings(spacing, len(dims))
    return tuple(_along(input, d, s, edge_order) for d, s in zip(dims, spacings, strict=True))
