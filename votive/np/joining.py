"""Arrays joined, taken apart, extended and shortened."""

from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy

from ..ops.registry import F
from .convert import Tensor, cast, detached, ndarray, place_of, to_tensor, wrap
from .element_types import as_dtype, check_cast, promoted
from .layout import axis_of
from .manipulation import atleast_1d, atleast_2d, atleast_3d
from .ufunc import store


def _meet(arrays: Any, dtype: Any, casting: str, name: str) -> list[Tensor]:
    items = list(arrays)
    if not items:
        raise ValueError(f"need at least one array to {name}")
    device = place_of(*items)
    ts = [to_tensor(a, device=device) for a in items]
    meet = promoted(*ts) if dtype is None else as_dtype(dtype)
    for t in ts:
        check_cast(name, t.dtype.np, meet, casting)
    return [cast(t, meet) for t in ts]


def _out(name: str, value: Tensor, out: Any) -> Any:
    return wrap(value) if out is None else store(name, value, out)


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """Arrays one behind the other along an axis.

    >>> votive.np.concatenate([[1, 2], [3.5]])
    array([1. , 2. , 3.5])
    """
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    ts = _meet(arrays, dtype, casting, "concatenate")
    if axis is None:
        return _out("concatenate", F.cat([t.reshape(-1) for t in ts]), out)
    if any(t.ndim == 0 for t in ts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    dim = axis_of(axis, ts[0].ndim)
    for i, t in enumerate(ts[1:], 1):
        if t.ndim != ts[0].ndim or any(a != b for k, (a, b) in enumerate(zip(t.shape, ts[0].shape)) if k != dim):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly, but the arrays "
                f"at index 0 and {i} have shapes {tuple(ts[0].shape)} and {tuple(t.shape)}"
            )
    return _out("concatenate", F.cat(ts, dim), out)


concat = concatenate


def stack(arrays: Any, /, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Arrays of one shape along a new axis.

    >>> votive.np.stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    ts = _meet(arrays, dtype, casting, "stack")
    if len({tuple(t.shape) for t in ts}) != 1:
        raise ValueError("all input arrays must have the same shape")
    return _out("stack", F.stack(ts, axis_of(axis, ts[0].ndim + 1)), out)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The arrays along an axis."""
    t = to_tensor(x)
    if t.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(wrap(p) for p in F.unbind(t, axis_of(axis, t.ndim)))


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, tuple) else [found]


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays below each other."""
    return concatenate(_several(atleast_2d(*tup)), 0, dtype=dtype, casting=casting)


row_stack = vstack


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays beside each other."""
    ts = _several(atleast_1d(*tup))
    return concatenate(ts, 0 if ts and ts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(tup: Any) -> ndarray:
    """Arrays behind each other."""
    return concatenate(_several(atleast_3d(*tup)), 2)


def column_stack(tup: Any) -> ndarray:
    """Lines as columns."""
    return concatenate(
        [t.unsqueeze(1) if t.ndim == 1 else t.reshape(-1, 1) if t.ndim == 0 else t for t in map(to_tensor, tup)], 1
    )


def block(arrays: Any) -> ndarray:
    """An array from nested lists of blocks."""

    def depth(x: Any) -> int:
        return 1 + depth(x[0]) if isinstance(x, list) else 0

    levels = depth(arrays)
    least = max([levels, *[to_tensor(x).ndim for x in _leaves(arrays)]])

    def build(x: Any, level: int) -> ndarray:
        if not isinstance(x, list):
            t = to_tensor(x)
            return wrap(t.reshape((1,) * (least - t.ndim) + tuple(t.shape)))
        if not x:
            raise ValueError("List at arrays cannot be empty")
        return concatenate([build(y, level + 1) for y in x], -(levels - level))

    return build(arrays, 0)


def _leaves(x: Any) -> list[Any]:
    return [leaf for y in x for leaf in _leaves(y)] if isinstance(x, list) else [x]


def _points(indices_or_sections: Any, size: int, strict: bool) -> list[int]:
    if hasattr(indices_or_sections, "__index__") and not getattr(indices_or_sections, "ndim", 0):
        n = operator.index(indices_or_sections)
        if n <= 0:
            raise ValueError("number sections must be larger than 0.")
        if strict and size % n:
            raise ValueError("array split does not result in an equal division")
        each, more = divmod(size, n)
        return [0, *numpy.cumsum([each + 1] * more + [each] * (n - more)).tolist()]
    return [0, *[operator.index(i) for i in indices_or_sections], size]


def _split(ary: Any, sections: Any, axis: int, strict: bool) -> list[ndarray]:
    t = to_tensor(ary)
    dim = axis_of(axis, t.ndim)
    size = int(t.shape[dim])
    points = _points(sections, size, strict)
    out = []
    for a, b in itertools.pairwise(points):
        start, stop, _ = slice(a, b).indices(size)
        out.append(wrap(t.narrow(dim, min(start, size), max(stop - start, 0))))
    return out


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Equal pieces of an array, or pieces between indices."""
    return _split(ary, indices_or_sections, axis, True)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Pieces of an array that may differ by one element."""
    return _split(ary, indices_or_sections, axis, False)


def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Pieces beside each other."""
    n = to_tensor(ary).ndim
    if n == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if n > 1 else 0)


def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Pieces below each other."""
    if to_tensor(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Pieces behind each other."""
    if to_tensor(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


def append(arr: Any, values: Any, axis: Any = None) -> ndarray:
    """Values behind an array."""
    if axis is None:
        return concatenate([to_tensor(arr).reshape(-1), to_tensor(values).reshape(-1)])
    return concatenate([arr, values], axis)


def delete(arr: Any, obj: Any, axis: Any = None) -> ndarray:
    """The array without what lies at some indices."""
    t = to_tensor(arr)
    if axis is None:
        t, axis = t.reshape(-1), 0
    dim = axis_of(axis, t.ndim)
    index = obj if isinstance(obj, slice) else detached(obj) if not isinstance(obj, (int, list)) else obj
    keep = numpy.delete(numpy.arange(int(t.shape[dim])), index)
    return wrap(F.index_select(t, dim, to_tensor(keep, device=t.device)))


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> ndarray:
    """Values put before some indices."""
    t = to_tensor(arr)
    if axis is None:
        t, axis = t.reshape(-1), 0
    dim = axis_of(axis, t.ndim)
    size = int(t.shape[dim])
    index = obj if isinstance(obj, (slice, int, list)) else detached(obj)
    new = cast(to_tensor(values, device=t.device), t.dtype)
    # Positions of both in the result, found by NumPy on the indices alone.
    count_of = numpy.arange(size)[index].size if isinstance(index, slice) else numpy.asarray(index).size
    single = isinstance(index, int) or getattr(index, "ndim", 1) == 0
    rows = int(new.shape[0]) if single and new.ndim == t.ndim and new.ndim else None
    if single and new.ndim == t.ndim:
        new = F.movedim(new, 0, dim)
    count = (int(new.shape[dim]) if rows is not None else 1) if single else count_of
    marks = numpy.insert(numpy.arange(size), index, -1 - numpy.arange(count))
    shape = list(t.shape)
    shape[dim] = count
    if single and new.ndim < t.ndim and new.ndim:
        new = new.unsqueeze(dim) if new.ndim == t.ndim - 1 else new
    both = F.cat([t, new.expand(shape)], dim)
    order = numpy.where(marks < 0, size - 1 - marks, marks)
    return wrap(F.index_select(both, dim, to_tensor(order, device=t.device)))


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> ndarray:
    """The array with a border: constants, or values taken from inside.

    >>> votive.np.pad([1, 2], 1)
    array([0, 1, 2, 0])
    """
    t = to_tensor(array)
    if isinstance(pad_width, dict):
        pad_width = [pad_width.get(i, pad_width.get(i - t.ndim, (0, 0))) for i in range(t.ndim)]
        pad_width = [p if isinstance(p, tuple) else (p, p) for p in pad_width]
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (t.ndim, 2)).tolist() if t.ndim else []
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")
    if mode in _BY_INDEX and kwargs.get("reflect_type", "even") == "even":
        for dim, pair in enumerate(widths):
            order = numpy.pad(numpy.arange(int(t.shape[dim])), pair, mode)
            t = F.index_select(t, dim, to_tensor(order, device=t.device))
        return wrap(t)
    if mode in ("constant", "empty"):
        values = kwargs.pop("constant_values", 0)
        if kwargs:
            raise ValueError(f"unsupported keyword arguments for mode '{mode}': {set(kwargs)}")
        pairs = numpy.broadcast_to(numpy.asarray(values), (t.ndim, 2)).tolist() if t.ndim else []
        for dim, ((low, high), (first, last)) in enumerate(zip(widths, pairs, strict=True)):
            t = F.cat([_border(t, dim, low, first), t, _border(t, dim, high, last)], dim)
        return wrap(t)
    return _computed_pad(t, widths, mode, kwargs)


# `reflect` with reflect_type="odd" computes values; the rest only repeats them.
_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")


def _border(t: Tensor, dim: int, n: int, value: Any) -> Tensor:
    shape = list(t.shape)
    shape[dim] = n
    return cast(F.full(shape, value, device=t.device), t.dtype)


def _computed_pad(t: Tensor, widths: Any, mode: Any, kwargs: Any) -> ndarray:
    from .convert import host

    if callable(mode):
        raise NotImplementedError("pad: a function as mode would write into vectors; use a named mode.")
    return wrap(host("pad", lambda a: numpy.pad(a, widths, mode, **kwargs), t))
