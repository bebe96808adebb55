"""Indices: grids by slices, indices of triangles and diagonals, and writing by flat indices."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .array import ndarray, wrap
from .convert import Tensor, cast, host, to_tensor
from .indexing import _unravel
from .joining import concatenate
from .layout import shape_of
from .ranges import arange, linspace, tri
from .searching import bounded, nonzero

_numpy: Any = numpy  # its overloads ask for literals


class _Grid:
    """`mgrid[0:3, 0:2]` and `ogrid[...]`."""

    def __init__(self, sparse: bool) -> None:
        self._real: Any = numpy.ogrid if sparse else numpy.mgrid

    def __getitem__(self, key: Any) -> Any:
        found = self._real[key]
        return tuple(wrap(to_tensor(f)) for f in found) if isinstance(found, tuple) else wrap(to_tensor(found))


class _Joiner:
    """`r_[1:4, 0, x]`: slices, numbers and arrays one behind the other."""

    def __init__(self, axis: int = 0, ndmin: int = 1, trans1d: int = -1) -> None:
        self.axis, self.ndmin, self.trans1d = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> ndarray:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans = self.axis, self.ndmin, self.trans1d
        if items and isinstance(items[0], str):
            numbers = items.pop(0).split(",")
            if not all(n.strip().lstrip("-").isdigit() for n in numbers):
                raise ValueError(f"unknown special directive {','.join(numbers)!r}; matrices are not supported.")
            values = [int(n) for n in numbers]
            axis, ndmin, trans = (*values, *(axis, ndmin, trans)[len(values) :])
        parts: list[Any] = []
        for item in items:
            if isinstance(item, slice):
                start = 0 if item.start is None else item.start
                step = 1 if item.step is None else item.step
                if isinstance(step, complex):
                    item = linspace(start, item.stop, int(abs(step)))
                else:
                    item = arange(start, item.stop, step)
                t, n = item.tensor, 1
            else:
                t = to_tensor(item)
                n = t.ndim
            if t.ndim < ndmin:
                if t.ndim == 0:
                    t = t.reshape((1,) * ndmin)
                else:
                    at = trans + ndmin - n + 1 if trans < 0 else trans
                    t = t.reshape((1,) * at + tuple(t.shape) + (1,) * (ndmin - n - at))
            parts.append(t)
        return concatenate(parts, axis)


class _Slices:
    """`s_[1:3, ...]`: the index itself."""

    def __init__(self, always_tuple: bool) -> None:
        self._always = always_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._always and not isinstance(key, tuple) else key


OBJECTS = {
    "mgrid": _Grid(False),
    "ogrid": _Grid(True),
    "r_": _Joiner(),
    "c_": _Joiner(-1, 2, 0),
    "s_": _Slices(False),
    "index_exp": _Slices(True),
}


def ix_(*args: Any) -> tuple[ndarray, ...]:
    """Lines as indices of an open grid.

    >>> [i.shape for i in votive.np.ix_([0, 1], [2])]
    [(2, 1), (1, 1)]
    """
    out = []
    for k, a in enumerate(args):
        t = to_tensor(a)
        if t.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if t.numel() == 0:
            t = t.to(dt.int64)
        if t.dtype is dt.bool_:
            t = F.nonzero(t)[:, 0]
        out.append(wrap(t.reshape((1,) * k + (-1,) + (1,) * (len(args) - k - 1))))
    return tuple(out)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[ndarray, ...]:
    """Indices for each dimension from indices counted through all of them."""
    sizes = shape_of(shape)
    t = to_tensor(indices)
    if t.dtype.category != dt.INT:
        raise TypeError("only int indices permitted")
    n = int(numpy.prod(sizes, dtype=int))
    if t.numel() and (int(t.min().item()) < 0 or int(t.max().item()) >= n):
        raise ValueError(f"index is out of bounds for array with size {n}")
    found = _unravel(t.to(dt.int64), sizes if order == "C" else sizes[::-1])
    return tuple(wrap(f) for f in (found if order == "C" else found[::-1]))


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> ndarray:
    """Indices counted through all dimensions from indices for each."""
    parts = [to_tensor(m) for m in multi_index]
    return wrap(host("ravel_multi_index", lambda *p: _numpy.ravel_multi_index(p, dims, mode, order), *parts))


def _pair(mask: Tensor) -> tuple[ndarray, ...]:
    return nonzero(mask)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """The indices at and below a diagonal."""
    return _pair(tri(n, m, k, bool).tensor)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[ndarray, ...]:
    """The indices at and above a diagonal."""
    return _pair(~tri(n, m, k - 1, bool).tensor)


def _two(arr: Any) -> Tensor:
    t = to_tensor(arr)
    if t.ndim != 2:
        raise ValueError("input array must be 2-d")
    return t


def tril_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """The indices at and below a diagonal of a matrix."""
    t = _two(arr)
    return tril_indices(int(t.shape[0]), k, int(t.shape[1]))


def triu_indices_from(arr: Any, k: int = 0) -> tuple[ndarray, ...]:
    """The indices at and above a diagonal of a matrix."""
    t = _two(arr)
    return triu_indices(int(t.shape[0]), k, int(t.shape[1]))


def mask_indices(n: int, mask_func: Any, k: Any = 0) -> tuple[ndarray, ...]:
    """The indices that a function such as `triu` leaves."""
    return nonzero(mask_func(wrap(F.ones(n, n, dtype=dt.int64)), k) != 0)


def diag_indices(n: int, ndim: int = 2) -> tuple[ndarray, ...]:
    """The indices of a diagonal."""
    return (arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[ndarray, ...]:
    """The indices of an array's diagonal."""
    t = to_tensor(arr)
    if t.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(t.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(int(t.shape[0]), t.ndim)


def fill_diagonal(a: ndarray, val: Any, wrap: bool = False) -> None:
    """Write values onto a diagonal."""
    t = a.tensor
    if t.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if t.ndim > 2 and len(set(t.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    step = int(t.shape[1]) + 1 if t.ndim == 2 else 1 + int(numpy.cumprod(t.shape[:-1]).sum())
    end = None if wrap or t.ndim != 2 else int(t.shape[1]) * int(t.shape[1])
    a.flat[slice(None, end, step)] = val


def put(a: ndarray, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at indices counted through all dimensions."""
    t = a.tensor
    index = bounded(to_tensor(ind, device=t.device), t.numel(), mode).reshape(-1)
    a.flat[index] = v


def place(arr: ndarray, mask: Any, vals: Any) -> None:
    """Write values, one after the other, where a mask holds."""
    if not to_tensor(vals).numel() and bool(to_tensor(mask, bool).any()):
        raise ValueError("Cannot insert from an empty array!")
    arr.flat[to_tensor(mask, bool).reshape(-1)] = vals


def putmask(a: ndarray, /, mask: Any, values: Any) -> None:
    """Write values where a mask holds, each to its own place."""
    t = a.tensor
    new = cast(to_tensor(values, device=t.device), t.dtype).reshape(-1)
    if not new.numel():
        return
    n = t.numel()
    new = new.repeat(-(-n // new.numel()))[:n].reshape(t.shape)
    t.copy_(F.where(to_tensor(mask, bool, t.device).reshape(t.shape), new, t))
