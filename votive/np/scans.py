"""Positions of extrema, partial sums and products, and values kept between bounds."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import host, ndarray, to_tensor, wrap
from .element_types import BOOL, NARROW_UNSIGNED, UINT64
from .layout import axis_of
from .reducing import accumulate_by
from .reductions import NOT_GIVEN, _given, finished
from .ufunc import store
from .ufunc_table import UFUNCS


def _position(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    t = to_tensor(a)
    keep = bool(_given(keepdims, False))
    if axis is None:
        flat, dim = t.reshape(-1), 0
    else:
        flat, dim = t, axis_of(axis, t.ndim) if t.ndim else 0
    if t.ndim == 0:
        flat = t.reshape(1)
    if flat.shape[dim] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if flat.dtype.np == UINT64 or flat.dtype.is_complex:
        value = host(name, lambda v: getattr(numpy, name)(v, axis=dim), flat.detach())
    else:
        if flat.dtype is dt.bool_ or flat.dtype.np in NARROW_UNSIGNED:
            flat = flat.to(dt.int64)
        value = getattr(F, name)(flat.detach(), dim)
    if axis is None:
        value = value.reshape((1,) * t.ndim) if keep else value.reshape(())
    elif t.ndim == 0:
        value = value.reshape(())
    elif keep:
        value = value.unsqueeze(dim)
    return finished(name, value, out)


def argmax(a: Any, /, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the largest value stands; the first of several.

    >>> votive.np.argmax([1, 3, 2])
    array(1)
    """
    return _position("argmax", a, axis, out, keepdims)


def argmin(a: Any, /, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the smallest value stands; the first of several.

    >>> votive.np.argmin([3, 1, 2])
    array(1)
    """
    return _position("argmin", a, axis, out, keepdims)


def _scan(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    t = to_tensor(a)
    if axis is None:
        t, axis = t.reshape(-1), 0
    elif t.ndim == 0 and axis in (0, -1):
        t = t.reshape(1)
    value = accumulate_by(UFUNCS[name], t, axis, dtype)
    return wrap(value) if out is None else store(name, value, out)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the first values.

    >>> votive.np.cumsum([1, 2, 3])
    array([1, 3, 6])
    """
    return _scan("add", a, axis, dtype, out)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the first values.

    >>> votive.np.cumprod([1, 2, 3])
    array([1, 2, 6])
    """
    return _scan("multiply", a, axis, dtype, out)


def _cumulative(name: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool) -> ndarray:
    t = to_tensor(x)
    if t.ndim == 0:
        raise ValueError("Input arrays must be at least one dimensional, but input is 0-d.")
    if axis is None:
        if t.ndim != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    dim = axis_of(axis, t.ndim)
    value = accumulate_by(UFUNCS[name], t, dim, dtype)
    if include_initial:
        first = list(value.shape)
        first[dim] = 1
        value = F.cat([F.full(first, 0 if name == "add" else 1, dtype=value.dtype, device=value.device), value], dim)
    return wrap(value) if out is None else store(name, value, out)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Sums of the first values, with the empty sum in front where it is asked for.

    >>> votive.np.cumulative_sum([1, 2], include_initial=True)
    array([0, 1, 3])
    """
    return _cumulative("add", x, axis, dtype, out, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Products of the first values, with the empty product in front where it is asked for.

    >>> votive.np.cumulative_prod([2, 3], include_initial=True)
    array([1, 2, 6])
    """
    return _cumulative("multiply", x, axis, dtype, out, include_initial)


def clip(
    a: Any,
    /,
    min: Any = NOT_GIVEN,
    max: Any = NOT_GIVEN,
    out: Any = None,
    *,
    a_min: Any = NOT_GIVEN,
    a_max: Any = NOT_GIVEN,
    dtype: Any = None,
    where: Any = True,
    casting: str = "same_kind",
) -> Any:
    """Values kept between bounds.

    >>> votive.np.clip([1, 5, 9], 2, 6)
    array([2, 5, 6])
    """
    if (a_min is not NOT_GIVEN or a_max is not NOT_GIVEN) and (min is not NOT_GIVEN or max is not NOT_GIVEN):
        raise ValueError("Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden.")
    low = _given(a_min, _given(min, None))
    high = _given(a_max, _given(max, None))
    x: Any = wrap(to_tensor(a))
    options = {"dtype": dtype, "casting": casting}
    low, high = (_fitting(b, x.dtype, top) for b, top in ((low, False), (high, True)))
    if low is not None:
        x = UFUNCS["maximum"](x, low, **options)
    if high is not None:
        x = UFUNCS["minimum"](x, high, **options)
    return UFUNCS["positive"](x, out=out, where=where) if x.dtype != BOOL else x


def _fitting(bound: Any, d: numpy.dtype[Any], top: bool) -> Any:
    """Bounds beyond the range of an integer dtype do not bound."""
    if type(bound) is not int or d.kind not in "iu":
        return bound
    info = numpy.iinfo(d)
    if (top and bound > info.max) or (not top and bound < info.min):
        return None
    return bound
