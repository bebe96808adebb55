"""Arrays as sets: their different values, and which of them are in others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, detached, ndarray, tensors, to_tensor, wrap
from .layout import axis_of
from .searching import _order


class UniqueAllResult(NamedTuple):
    """Values, where each occurs first, which one each element is, and how often each occurs."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class UniqueCountsResult(NamedTuple):
    """Values and how often each occurs."""

    values: ndarray
    counts: ndarray


class UniqueInverseResult(NamedTuple):
    """Values and which one each element is."""

    values: ndarray
    inverse_indices: ndarray


def _groups(flat: Tensor, equal_nan: bool) -> tuple[Tensor, Tensor]:
    """The order that sorts, and where a new value begins in it."""
    order = _order(flat, 0, False)
    line = flat.detach()[order]
    n = int(line.shape[0])
    if not n:
        return order, F.zeros((0,), dtype=dt.bool_, device=flat.device)
    new = (
        F.ne(line[1:], line[:-1]) if line.dtype.np.kind != "u" else F.ne(line[1:].to(dt.int64), line[:-1].to(dt.int64))
    )
    if equal_nan and line.dtype.is_inexact:
        new = new & ~(F.isnan(line[1:]) & F.isnan(line[:-1]))
    return order, F.cat([F.ones((1,), dtype=dt.bool_, device=flat.device), new])


def _all(flat: Tensor, equal_nan: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    order, new = _groups(flat, equal_nan)
    starts = F.nonzero(new)[:, 0]
    first = order[starts]
    group = F.cumsum(new.to(dt.int64), 0) - 1
    inverse = F.zeros_like(order).scatter(0, order, group) if order.numel() else order
    ends = F.cat([starts[1:], F.full((1,), int(order.shape[0]), dtype=dt.int64, device=flat.device)])
    counts = ends - starts if starts.numel() else starts
    return flat[first], first, inverse, counts


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The different values in order; with `axis`, the different slices.

    >>> votive.np.unique([3, 1, 3])
    array([1, 3])
    """
    t = to_tensor(ar)
    if axis is None:
        values, first, inverse, counts = _all(t.reshape(-1), equal_nan)
        inverse = inverse.reshape(t.shape)
    else:
        dim = axis_of(axis, t.ndim)
        _, f, i, c = numpy.unique(detached(t), True, True, True, axis=dim)
        first, inverse, counts = (to_tensor(v, device=t.device) for v in (f, i.reshape(-1), c))
        values = F.index_select(t, dim, first)
    out = [wrap(values)]
    for asked, found in ((return_index, first), (return_inverse, inverse), (return_counts, counts)):
        if asked:
            out.append(wrap(found))
    return out[0] if len(out) == 1 else tuple(out)


def unique_all(x: Any, /) -> UniqueAllResult:
    """The different values with all that is known about them."""
    v, f, i, c = unique(x, True, True, True, equal_nan=False)
    return UniqueAllResult(v, f, i, c)


def unique_counts(x: Any, /) -> UniqueCountsResult:
    """The different values and how often each occurs."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """The different values and which one each element is."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any, /) -> ndarray:
    """The different values."""
    return unique(x, equal_nan=False)


def _different(x: Any, assume_unique: bool) -> ndarray:
    return wrap(to_tensor(x).reshape(-1)) if assume_unique else unique(x)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> ndarray:
    """Whether each element is among others.

    >>> votive.np.isin([1, 2, 3], [2, 5])
    array([False,  True, False])
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    a, b = (t.detach() for t in tensors(element, test_elements))
    if a.dtype.np.kind == "u" and a.dtype.itemsize > 1:
        a, b = a.to(dt.int64), b.to(dt.int64)  # the same bits, and only equality is asked
    if a.dtype.is_complex or a.dtype is dt.bool_:
        found = F.eq(a.reshape(-1, 1), b.reshape(1, -1)).any(1).reshape(a.shape)
    else:
        found = F.isin(a, b.reshape(-1)) if b.numel() else F.zeros(tuple(a.shape), dtype=dt.bool_, device=a.device)
        if a.dtype.is_floating_point:
            found = found & ~F.isnan(a)
    return wrap(~found if invert else found)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Values that are in both."""
    a, b = tensors(ar1, ar2)
    if return_indices:
        _, i, j = numpy.intersect1d(detached(a), detached(b), assume_unique, return_indices=True)
        first, second = to_tensor(i, device=a.device), to_tensor(j, device=a.device)
        return wrap(a.reshape(-1)[first]), wrap(first), wrap(second)
    one, two = _different(a, assume_unique), _different(b, assume_unique)
    both = one[isin(one, two)]
    return unique(both) if assume_unique else both


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """Values of the first that are not in the second."""
    a = _different(ar1, assume_unique)
    return a[isin(a, ar2, invert=True)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """Values that are in one of both."""
    a, b = tensors(ar1, ar2)
    one, two = _different(a, assume_unique), _different(b, assume_unique)
    from .joining import concatenate
    from .searching import sort

    return sort(concatenate([one[isin(one, two, invert=True)], two[isin(two, one, invert=True)]]))


def union1d(ar1: Any, ar2: Any) -> ndarray:
    """Values that are in either."""
    a, b = tensors(ar1, ar2)
    return unique(F.cat([a.reshape(-1), b.reshape(-1)]))
