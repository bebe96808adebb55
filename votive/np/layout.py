"""Axes, and the order of memory."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from ..ops.registry import F
from ..tensor import Tensor

AxisError = numpy.exceptions.AxisError


def axis_of(axis: Any, ndim: int, name: str | None = None) -> int:
    """One axis, counted from the front."""
    i = operator.index(axis)
    if not -ndim <= i < ndim:
        raise AxisError(i, ndim, name)
    return i % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that `axis` names: all for None, one, or several."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list)):
        found = tuple(axis_of(a, ndim) for a in axis)
        if len(set(found)) != len(found):
            raise ValueError("duplicate value in 'axis'")
        return found
    if ndim == 0 and operator.index(axis) in (0, -1):
        return ()
    return (axis_of(axis, ndim),)


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape that was given as one number or several."""
    if hasattr(shape, "__index__") and getattr(shape, "ndim", 0) == 0:
        shape = (shape,)
    sizes = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise ValueError("negative dimensions are not allowed")
    return sizes


def ordered(t: Tensor, order: Any) -> Tensor:
    """The values in the asked order of memory: rows first (C), columns first (F), or as they are (K, A)."""
    if order in ("K", "A", None):
        return t
    if order == "C":
        return t.contiguous()
    if order == "F":
        back = tuple(range(t.ndim - 1, -1, -1))
        return t.permute(*back).contiguous().permute(*back) if t.ndim > 1 else t.contiguous()
    raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")


def is_fortran(t: Tensor) -> bool:
    """Whether columns come first in memory, and rows do not."""
    if t.ndim < 2 or t.is_contiguous():
        return False
    return bool(t.permute(*range(t.ndim - 1, -1, -1)).is_contiguous())


def reversed_dims(t: Tensor) -> Tensor:
    """The transposed tensor."""
    return t.permute(*range(t.ndim - 1, -1, -1)) if t.ndim > 1 else t


def moved_last(t: Tensor, dim: int) -> Tensor:
    """The tensor with a dimension moved to the end."""
    return F.movedim(t, dim, -1)
