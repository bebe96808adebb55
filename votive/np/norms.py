"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from .. import linalg as L
from ..ops.registry import F
from .convert import Tensor, cast, result, to_tensor
from .element_types import FLOAT64
from .layout import axes_of


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of vectors or matrices.

    >>> votive.np.linalg.norm([3.0, 4.0])
    array(5.)
    """
    t = to_tensor(x)
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and t.ndim == 2) or (ord == 2 and t.ndim == 1):
            value = _vector_norm(t.reshape(-1), 2, (0,), False)
            return result(value.reshape((1,) * t.ndim) if keepdims else value)
        axis = tuple(range(t.ndim))
    axes = axes_of(axis, t.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"Invalid norm order '{ord}' for vectors")
        return result(_vector_norm(t, 2 if ord is None else ord, axes, keepdims))
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return result(_matrix_norm(t, "fro" if ord in (None, "f") else ord, axes, keepdims))


def _vector_norm(t: Tensor, ord: Any, axes: tuple[int, ...], keep: bool) -> Tensor:
    dims = list(axes)
    if ord in (math.inf, -math.inf) and any(t.shape[i] == 0 for i in axes):
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    if not dims:
        return F.abs(t)
    if ord == 0:
        return F.ne(t, 0).to(t.dtype.to_real()).sum(dims, keepdim=keep)
    if ord == 2:
        return L.vector_norm(t, 2, dims, keepdim=keep)
    size = F.abs(t)
    if ord == math.inf:
        return F.amax(size, dims, keepdim=keep)
    if ord == -math.inf:
        return F.amin(size, dims, keepdim=keep)
    if ord == 1:
        return F.sum(size, dims, keepdim=keep)
    return F.pow(F.sum(F.pow(size, ord), dims, keepdim=keep), 1.0 / ord)


def _end(t: Tensor, dim: int, largest: bool) -> Tensor:
    """The largest or smallest along a dimension; the largest of no sizes is 0."""
    if t.shape[dim]:
        return (F.amax if largest else F.amin)(t, [dim], keepdim=True)
    if not largest:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")
    return F.zeros(tuple(1 if i == dim else n for i, n in enumerate(t.shape)), dtype=t.dtype, device=t.device)


def _matrix_norm(t: Tensor, ord: Any, axes: tuple[int, int] | tuple[int, ...], keep: bool) -> Tensor:
    a, b = axes
    if ord == "fro":
        return _vector_norm(t, 2, (a, b), keep)
    if ord in (1, -1, math.inf, -math.inf):
        inner, outer_ = (a, b) if abs(ord) == 1 else (b, a)
        value = _end(F.sum(F.abs(t), inner, keepdim=True), outer_, ord > 0)
    elif ord in (2, -2, "nuc"):
        s = L.svdvals(F.movedim(t, (a, b), (-2, -1)))
        value = F.sum(s, -1) if ord == "nuc" else _end(s, s.ndim - 1, ord == 2).squeeze(-1)
        for i in sorted(axes):
            value = value.unsqueeze(i)
    else:
        raise ValueError(
            "Invalid norm order for matrices." if not isinstance(ord, str) else f"Invalid norm order {ord!r}."
        )
    return value if keep else value.reshape(tuple(n for i, n in enumerate(value.shape) if i not in axes))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A norm of vectors along axes, or of all elements."""
    t = to_tensor(x)
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    axes = axes_of(axis, t.ndim)
    return result(_vector_norm(t, ord, axes, bool(keepdims)))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of the matrices in the last two axes."""
    t = to_tensor(x)
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    if t.ndim < 2:
        raise ValueError("matrix_norm: arrays of at least two dimensions are needed.")
    return result(_matrix_norm(t, ord, (t.ndim - 2, t.ndim - 1), bool(keepdims)))
