"""Arrays of ranges, grids and diagonals."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy

from ..core.memory_format import contiguous_format
from ..ops.registry import F
from .convert import Tensor, cast, ndarray, place_of, tensors, to_tensor, wrap
from .creation import asarray, no_like, resolved, zeros
from .element_types import FLOAT64, as_dtype, promote_types, promoted
from .layout import ordered, shape_of

_numpy: Any = numpy  # its overloads ask for literals


def arange(
    start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, like: Any = None
) -> ndarray:
    """Numbers from `start` up to `stop` by `step`.

    >>> votive.np.arange(1, 7, 2)
    array([1, 3, 5])
    """
    no_like(like)
    if stop is None:
        start, stop = None, start
    if stop is None:
        raise TypeError("arange() requires stop to be specified.")
    first, last, by = (
        v.item() if hasattr(v, "item") and isinstance(v, (ndarray, Tensor)) else v
        for v in (0 if start is None else start, stop, 1 if step is None else step)
    )
    # As many numbers as NumPy computes, and the same ones: start + i * step in the wider type.
    return asarray(_numpy.arange(first, last, by, None if dtype is None else as_dtype(dtype)), device=device)


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`.

    >>> votive.np.linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    meet = promoted(start, stop, 1.0)
    meet = numpy.result_type(meet, FLOAT64) if meet.kind in "biu" else meet
    where = place_of(start, stop) if device is None else resolved(device)
    a, b = (to_tensor(v, meet, where) for v in (start, stop))
    a, b = F.broadcast_tensors(a, b)
    parts = count - 1 if endpoint else count
    steps = cast(F.arange(count, device=where), meet).reshape((-1,) + (1,) * a.ndim)
    delta = b - a
    step = delta / parts if parts > 0 else delta * math.nan
    out = steps * step + a if parts > 0 else steps * delta + a
    if parts > 0 and not bool(F.eq(step, 0).logical_not().all()):
        out = (steps / parts) * delta + a
    if endpoint and count > 1:
        out = F.cat([out[:-1], b.unsqueeze(0)])
    if dtype is not None and as_dtype(dtype).kind in "iu":
        out = F.floor(out)
    found = wrap(cast(F.movedim(out, 0, axis) if axis else out, meet if dtype is None else dtype))
    return (found, wrap(step)) if retstep else found


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> ndarray:
    """Powers of `base` with exponents at equal distances.

    >>> votive.np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    exponents: ndarray = linspace(start, stop, num, endpoint, axis=axis)
    if not isinstance(base, (int, float)):
        base = wrap(F.unsqueeze(to_tensor(base), axis)) if to_tensor(base).ndim else wrap(to_tensor(base))
    out = base**exponents
    return out if dtype is None else wrap(cast(out.tensor, dtype))


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> ndarray:
    """Numbers at equal ratios from `start` to `stop`.

    >>> votive.np.geomspace(1, 8, 4)
    array([1., 2., 4., 8.])
    """
    a, b = tensors(start, stop)
    if bool((F.eq(a, 0)).any()) or bool(F.eq(b, 0).any()):
        raise ValueError("Geometric sequence cannot include zero")
    meet = promoted(a, b, 1.0)
    meet = numpy.result_type(meet, FLOAT64) if meet.kind in "biu" else meet
    a, b = F.broadcast_tensors(cast(a, meet), cast(b, meet))
    sign = F.sgn(a)
    logs = linspace(wrap(F.log10(a / sign)), wrap(F.log10(b / sign)), num, endpoint).tensor
    out = F.pow(F.full((), 10.0, dtype=logs.dtype, device=logs.device), logs) * sign
    if num > 0:
        rest = [out[1:-1], b.unsqueeze(0)] if endpoint and num > 1 else [out[1:]]
        out = F.cat([a.unsqueeze(0), *rest])
    return wrap(cast(F.movedim(out, 0, axis), meet if dtype is None else dtype))


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> ndarray:
    """Ones on a diagonal.

    >>> votive.np.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    no_like(like)
    where = resolved(device)
    rows, columns = int(N), int(N if M is None else M)
    t = F.eq(F.arange(rows, device=where).unsqueeze(1) + int(k), F.arange(columns, device=where))
    return wrap(ordered(cast(t, float if dtype is None else dtype), order))


def identity(n: int, dtype: Any = None, *, like: Any = None) -> ndarray:
    """The identity matrix.

    >>> votive.np.identity(1)
    array([[1.]])
    """
    no_like(like)
    return eye(n, dtype=dtype)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The coordinates of each element of a shape.

    >>> votive.np.indices((1, 2))
    array([[[0, 0]],
    <BLANKLINE>
           [[0, 1]]])
    """
    sizes = shape_of(dimensions)
    n = len(sizes)
    lines = [cast(F.arange(s), dtype).reshape((1,) * i + (s,) + (1,) * (n - i - 1)) for i, s in enumerate(sizes)]
    if sparse:
        return tuple(wrap(x) for x in lines)
    if not lines:
        return zeros((0,), dtype)
    return wrap(F.stack([F.broadcast_to(x, sizes) for x in lines]))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> ndarray:
    """Ones at and below a diagonal.

    >>> votive.np.tri(2, dtype=int)
    array([[1, 0],
           [1, 1]])
    """
    no_like(like)
    rows, columns = F.arange(int(N)).unsqueeze(1), F.arange(int(N if M is None else M))
    return wrap(cast(F.le(columns, rows + k), float if dtype is None else dtype))


def _triangle(name: str, m: Any, k: int) -> ndarray:
    t = to_tensor(m)
    if t.ndim < 1:
        raise ValueError(f"{name}: at least one dimension is needed.")
    if t.ndim == 1:
        t = t.expand(t.shape[0], t.shape[0])
    return wrap(getattr(F, name)(t, int(k)))


def tril(m: Any, k: int = 0) -> ndarray:
    """The values at and below a diagonal; zeros elsewhere.

    >>> votive.np.tril([[1, 2], [3, 4]])
    array([[1, 0],
           [3, 4]])
    """
    return _triangle("tril", m, k)


def triu(m: Any, k: int = 0) -> ndarray:
    """The values at and above a diagonal; zeros elsewhere.

    >>> votive.np.triu([[1, 2], [3, 4]])
    array([[1, 2],
           [0, 4]])
    """
    return _triangle("triu", m, k)


def diag(v: Any, k: int = 0) -> ndarray:
    """A matrix with a diagonal, or the diagonal of a matrix.

    >>> votive.np.diag([[1, 2], [3, 4]])
    array([1, 4])
    """
    t = to_tensor(v)
    if t.ndim not in (1, 2):
        raise ValueError("Input must be 1- or 2-d.")
    if t.ndim == 2 and not -t.shape[0] <= k <= t.shape[1]:
        return wrap(t.reshape(-1)[:0])
    return wrap(F.diag(t, int(k)))


def diagflat(v: Any, k: int = 0) -> ndarray:
    """A matrix whose diagonal holds all values.

    >>> votive.np.diagflat([[1, 2]])
    array([[1, 0],
           [0, 2]])
    """
    return diag(to_tensor(v).reshape(-1), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> ndarray:
    """Powers of the values as columns.

    >>> votive.np.vander([1, 2], 3)
    array([[1, 1, 1],
           [4, 2, 1]])
    """
    t = to_tensor(x)
    if t.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = len(t) if N is None else int(N)
    t = cast(t, promote_types(t.dtype, int))
    columns = [F.ones_like(t)]
    for _ in range(n - 1):
        columns.append(columns[-1] * t)
    columns = columns[:n]
    if not columns:
        return wrap(t.unsqueeze(1)[:, :0])
    return wrap(F.stack(columns if increasing else columns[::-1], 1))


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[ndarray, ...]:
    """Coordinates of the grid that lines span.

    >>> votive.np.meshgrid([1, 2], [3])[0]
    array([[1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    n = len(xi)
    lines = [
        to_tensor(x, device=place_of(*xi)).reshape((1,) * i + (-1,) + (1,) * (n - i - 1)) for i, x in enumerate(xi)
    ]
    if indexing == "xy" and n > 1:
        lines = [F.transpose(x, 0, 1) for x in lines]
    if not sparse:
        lines = list(F.broadcast_tensors(*lines)) if lines else []
    return tuple(wrap(x.clone(memory_format=contiguous_format) if copy else x) for x in lines)
