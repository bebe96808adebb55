"""Sorting, searching and counting."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, detached, host, ndarray, place_of, to_tensor, truth, wrap
from .element_types import BOOL, INT64, promoted
from .layout import axis_of
from .ufunc import store

_numpy: Any = numpy  # its overloads ask for literals


def _order(t: Tensor, dim: int, descending: bool) -> Tensor:
    """Indices that sort, stable, with NaN at the end as in NumPy (at the front in reverse)."""
    source = t.detach()
    if source.dtype.is_complex:
        by_imag = F.sort(F.imag(source).contiguous(), dim=dim, stable=True, descending=descending)[1]
        real = F.take_along_dim(F.real(source).contiguous(), by_imag, dim)
        by_real = F.sort(real, dim=dim, stable=True, descending=descending)[1]
        return F.take_along_dim(by_imag, by_real, dim)
    return F.sort(source, dim=dim, stable=True, descending=descending)[1]


def _sorted(t: Tensor, dim: int, descending: bool) -> Tensor:
    return F.take_along_dim(t, _order(t, dim, descending), dim)


def _check(kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"sort kind must be one of 'quicksort', 'heapsort', 'mergesort' or 'stable' (got {kind!r})")


def sort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> ndarray:
    """The values in order; always stable.

    >>> votive.np.sort([3, 1, 2])
    array([1, 2, 3])
    """
    _check(kind, order)
    t = to_tensor(a)
    if axis is None:
        t, axis = t.reshape(-1), 0
    return wrap(_sorted(t, axis_of(axis, t.ndim), descending))


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None, descending: bool = False
) -> ndarray:
    """The indices that put values in order.

    >>> votive.np.argsort([3, 1, 2])
    array([1, 2, 0])
    """
    _check(kind, order)
    t = to_tensor(a)
    if axis is None or t.ndim == 0:
        t, axis = t.reshape(-1), 0
    return wrap(_order(t, axis_of(axis, t.ndim), descending))


def sort_complex(a: Any) -> ndarray:
    """Complex values sorted by real, then by imaginary part.

    >>> votive.np.sort_complex([2, 1])
    array([1.+0.j, 2.+0.j])
    """
    t = to_tensor(a)
    wanted = "complex64" if t.dtype.np.kind in "iu" and t.dtype.itemsize <= 2 else "complex128"
    return sort(wrap(t if t.dtype.is_complex else cast(t, wanted)))


def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """Indices that sort by several keys, the last one first.

    >>> votive.np.lexsort(([1, 0, 2], [0, 1, 0]))
    array([0, 2, 1])
    """
    lines = [to_tensor(k, device=place_of(*keys)) for k in keys]
    if not lines:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    first = lines[0]
    if first.ndim == 0:
        return wrap(F.zeros((), dtype=dt.int64, device=first.device))
    dim = axis_of(axis, first.ndim)
    order = _order(first, dim, False)
    for k in lines[1:]:
        order = F.take_along_dim(order, _order(F.take_along_dim(k, order, dim), dim, False), dim)
    return wrap(order)


def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """The values so that the one at `kth` stands where it does in order; here all of them are sorted."""
    _check(None, order)
    _check_kth(a, kth, axis)
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """The indices of `partition`."""
    _check(None, order)
    _check_kth(a, kth, axis)
    return argsort(a, axis)


def _check_kth(a: Any, kth: Any, axis: Any) -> None:
    t = to_tensor(a)
    n = t.numel() if axis is None else int(t.shape[axis_of(axis, t.ndim)])
    for k in numpy.atleast_1d(detached(kth) if not isinstance(kth, int) else kth):
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")


def nonzero(a: Any, /) -> tuple[ndarray, ...]:
    """The indices of values that are not zero, an array per dimension.

    >>> votive.np.nonzero([0, 3, 4])
    (array([1, 2]),)
    """
    t = to_tensor(a)
    if t.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    found = F.nonzero(t.detach())
    return tuple(wrap(found[:, i].contiguous()) for i in range(t.ndim))


def argwhere(a: Any) -> ndarray:
    """The indices of values that are not zero, a row for each."""
    return wrap(F.nonzero(to_tensor(a).detach()))


def flatnonzero(a: Any) -> ndarray:
    """The indices of values that are not zero, counted through all dimensions."""
    return nonzero(to_tensor(a).reshape(-1))[0]


def searchsorted(a: Any, v: Any, /, side: str = "left", sorter: Any = None) -> ndarray:
    """Where values would be put into sorted ones.

    >>> votive.np.searchsorted([1, 2, 3], 2.5)
    array(2)
    """
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    place = place_of(a, v)
    meet = promoted(
        a if not isinstance(a, (list, tuple)) else to_tensor(a), v if not isinstance(v, (list, tuple)) else to_tensor(v)
    )
    line, values = to_tensor(a, meet, place).detach(), to_tensor(v, meet, place).detach()
    if line.ndim != 1:
        raise ValueError("object of too small depth for desired array")
    if sorter is not None:
        line = line[to_tensor(sorter, INT64, place)]
    if meet.kind in "uc" or meet == BOOL:
        return wrap(cast(host("searchsorted", lambda x, y: _numpy.searchsorted(x, y, side), line, values), INT64))
    return wrap(F.searchsorted(line.contiguous(), values.contiguous(), right=side == "right"))


def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The bin that each value belongs to.

    >>> votive.np.digitize([0.5, 2.5], [0, 1, 2])
    array([1, 3])
    """
    edges = detached(bins)
    steps = numpy.diff(edges)
    if edges.ndim != 1 or not ((steps >= 0).all() or (steps <= 0).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    side = "left" if right else "right"
    if len(edges) and (steps <= 0).all() and not (steps >= 0).all():
        return wrap(len(edges) - searchsorted(edges[::-1].copy(), x, "right" if right else "left").tensor)
    return searchsorted(bins, x, side)


def extract(condition: Any, arr: Any) -> ndarray:
    """The values where a condition holds."""
    t = to_tensor(arr)
    return wrap(t.reshape(-1)[truth(to_tensor(condition, device=t.device)).reshape(-1)])


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Elements at indices along an axis.

    >>> votive.np.take([5, 6, 7], [2, 0])
    array([7, 5])
    """
    t = to_tensor(a)
    if axis is None:
        t, axis = t.reshape(-1), 0
    dim = axis_of(axis, t.ndim)
    index = bounded(to_tensor(indices, device=t.device), int(t.shape[dim]), mode)
    value = F.index_select(t, dim, index.reshape(-1))
    shape = (*t.shape[:dim], *index.shape, *t.shape[dim + 1 :])
    value = value.reshape(tuple(shape))
    return wrap(value) if out is None else store("take", value, out)


def bounded(index: Tensor, n: int, mode: str) -> Tensor:
    """Indices from the front within a size: checked, wrapped around, or clipped."""
    if index.dtype.category != dt.INT:
        if index.dtype is not dt.bool_ and index.numel():
            raise TypeError(
                f"Cannot cast array data from {index.dtype.np!r} to dtype('int64') according to the rule 'safe'"
            )
    index = index.to(dt.int64)
    if mode == "wrap":
        return F.remainder(index, n)
    if mode == "clip":
        return F.clamp(index, 0, n - 1)
    if mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if index.numel():
        low, high = int(index.min().item()), int(index.max().item())
        if low < -n or high >= n:
            raise IndexError(f"index {low if low < -n else high} is out of bounds for axis with size {n}")
    return F.where(F.lt(index, 0), index + n, index)


def take_along_axis(arr: Any, indices: Any, /, axis: Any = -1) -> ndarray:
    """Elements at indices that differ along the other axes.

    >>> votive.np.take_along_axis([[5, 6]], [[1]], axis=1)
    array([[6]])
    """
    t = to_tensor(arr)
    index = to_tensor(indices, device=t.device)
    if axis is None:
        if index.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        t, axis = t.reshape(-1), 0
    dim = axis_of(axis, t.ndim)
    if index.dtype.category != dt.INT:
        raise IndexError("`indices` must be an integer array")
    if index.ndim != t.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return wrap(F.take_along_dim(*_along(t, bounded(index, int(t.shape[dim]), "raise"), dim), dim))


def _along(t: Tensor, index: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    common = list(
        numpy.broadcast_shapes(
            *[tuple(1 if i == dim else n for i, n in enumerate(s)) for s in (tuple(t.shape), tuple(index.shape))]
        )
    )
    one, two = list(common), list(common)
    one[dim], two[dim] = int(t.shape[dim]), int(index.shape[dim])
    return t.expand(one), index.expand(two)


def put_along_axis(arr: ndarray, indices: Any, values: Any, axis: Any = -1) -> None:
    """Write values at indices that differ along the other axes."""
    t = arr.tensor
    index = to_tensor(indices, device=t.device)
    if axis is None:
        t, axis = t.view(-1), 0
    dim = axis_of(axis, t.ndim)
    _, index = _along(t, bounded(index, int(t.shape[dim]), "raise"), dim)
    new = cast(to_tensor(values, device=t.device), t.dtype).expand(tuple(index.shape))
    t.scatter_(dim, index.contiguous(), new.contiguous())


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """For each element the value of the choice it names."""
    index = to_tensor(a, device=place_of(a, *choices))
    options = [to_tensor(c, device=index.device) for c in choices]
    meet = promoted(*options)
    index = bounded(index, len(options), mode)
    if mode == "raise" and bool(F.lt(to_tensor(a), 0).any()):
        raise ValueError("invalid entry in choice array")
    shape = numpy.broadcast_shapes(tuple(index.shape), *[tuple(o.shape) for o in options])
    table = F.stack([cast(o, meet).expand(shape) for o in options])
    value = F.take_along_dim(table, index.expand(shape).unsqueeze(0), 0)[0]
    return wrap(value) if out is None else store("choose", value, out)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """The slices along an axis where a condition holds."""
    t = to_tensor(a)
    if axis is None:
        t, axis = t.reshape(-1), 0
    mask = to_tensor(condition, device=t.device)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(wrap(t), F.nonzero(mask)[:, 0], axis, out)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each small integer occurs.

    >>> votive.np.bincount([0, 2, 2])
    array([1, 0, 2])
    """
    t = to_tensor(x)
    if t.ndim != 1:
        raise ValueError(
            "object too deep for desired array" if t.ndim else "object of too small depth for desired array"
        )
    if t.dtype.category not in (dt.INT, dt.BOOL) and t.numel():
        raise TypeError(f"Cannot cast array data from {t.dtype.np!r} to dtype('int64') according to the rule 'safe'")
    t = t.to(dt.int64)
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    if t.numel() and int(t.min().item()) < 0:
        raise ValueError("'list' argument must have no negative elements")
    n = max(int(t.max().item()) + 1 if t.numel() else 0, minlength)
    if weights is None:
        return wrap(F.zeros(n, dtype=dt.int64, device=t.device).index_add(0, t, F.ones_like(t)))
    w = to_tensor(weights, "float64", t.device)
    if tuple(w.shape) != tuple(t.shape):
        raise ValueError("The weights and list don't have the same length.")
    return wrap(F.index_add(F.zeros(n, dtype=dt.float64, device=t.device), 0, t, w))
