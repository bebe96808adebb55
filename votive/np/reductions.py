"""Sums, extrema, means and variances along axes; results without dimensions are arrays without dimensions."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, result, to_tensor, truth, wrap
from .element_types import BOOL, FLOAT64, as_dtype, promoted
from .layout import axes_of
from .reducing import reduce_by
from .ufunc import store, ufunc
from .ufunc_table import UFUNCS

NOT_GIVEN: Any = numpy._NoValue


def _given(value: Any, default: Any) -> Any:
    return default if value is NOT_GIVEN else value


def finished(name: str, value: Tensor, out: Any) -> Any:
    """The result as an array, or in the array given for it."""
    return result(value) if out is None else store(name, value, out, "unsafe")


def _reduce(name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    fn: ufunc = UFUNCS[name]
    value = reduce_by(
        fn, to_tensor(a), axis, dtype, bool(_given(keepdims, False)), _given(initial, None), _given(where, True)
    )
    return finished(name, value, out)


def sum(
    a: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Any:
    """The sum along axes.

    >>> votive.np.sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    return _reduce("add", a, axis, dtype, out, keepdims, initial, where)


def prod(
    a: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Any:
    """The product along axes.

    >>> votive.np.prod([2, 3])
    array(6)
    """
    return _reduce("multiply", a, axis, dtype, out, keepdims, initial, where)


def max(
    a: Any, /, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True
) -> Any:
    """The largest value along axes; NaN where there is one.

    >>> votive.np.max([1, 3, 2])
    array(3)
    """
    return _reduce("maximum", a, axis, None, out, keepdims, initial, where)


def min(
    a: Any, /, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True
) -> Any:
    """The smallest value along axes; NaN where there is one.

    >>> votive.np.min([3, 1, 2])
    array(1)
    """
    return _reduce("minimum", a, axis, None, out, keepdims, initial, where)


amax, amin = max, min


def all(a: Any, /, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Whether all values are true.

    >>> votive.np.all([True, False])
    array(False)
    """
    return _reduce("logical_and", a, axis, None, out, keepdims, None, where)


def any(a: Any, /, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Whether a value is true.

    >>> votive.np.any([True, False])
    array(True)
    """
    return _reduce("logical_or", a, axis, None, out, keepdims, None, where)


def count_nonzero(a: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many values are not zero.

    >>> votive.np.count_nonzero([0, 1, 2])
    array(2)
    """
    t = to_tensor(a)
    return sum(wrap(truth(t)), axis=axis, keepdims=keepdims)


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """The distance between the largest and the smallest value.

    >>> votive.np.ptp([1, 5, 3])
    array(4)
    """
    high, low = max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims)
    return UFUNCS["subtract"](high, low, out=out)


def _counted(t: Tensor, axes: tuple[int, ...], where: Any) -> Any:
    if where is True:
        n = 1
        for i in axes:
            n *= int(t.shape[i])
        return n
    mask = to_tensor(where, BOOL, t.device).expand(tuple(t.shape))
    return F.sum(mask, list(axes), keepdim=True) if axes else mask.to(dt.int64)


def _float_dtype(t: Tensor, dtype: Any) -> numpy.dtype[Any]:
    if dtype is not None:
        return as_dtype(dtype)
    return FLOAT64 if t.dtype.category in (dt.INT, dt.BOOL) else t.dtype.np


def mean_of(t: Tensor, axes: tuple[int, ...], keep: bool, dtype: Any = None, where: Any = True) -> Tensor:
    """The mean, computed in float32 for half types, without a warning where nothing is counted."""
    wanted = _float_dtype(t, dtype)
    half = t.dtype in dt.HALF and wanted == t.dtype.np
    work = cast(t, "float32" if half else wanted)
    total = reduce_by(UFUNCS["add"], work, axes, None, True, None, where)
    count = _counted(work, axes, where)
    if wanted.kind in "biu":
        value = cast(F.div(cast(total, FLOAT64), count), wanted)
    else:
        value = total / count if not isinstance(count, int) or count else total * math.nan
    value = value if keep else _dropped(value, axes)
    return cast(value, wanted)


def _dropped(t: Tensor, axes: tuple[int, ...]) -> Tensor:
    return t.reshape(tuple(n for i, n in enumerate(t.shape) if i not in axes))


def mean(
    a: Any, /, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """The arithmetic mean along axes.

    >>> votive.np.mean([1, 2, 4.5])
    array(2.5)
    """
    t = to_tensor(a)
    return finished(
        "mean", mean_of(t, axes_of(axis, t.ndim), bool(_given(keepdims, False)), dtype, _given(where, True)), out
    )


def variance_of(t: Tensor, axes: tuple[int, ...], keep: bool, ddof: Any, dtype: Any, where: Any, mean: Any) -> Tensor:
    """The mean squared distance from the mean, with `ddof` taken off the count."""
    wanted = _float_dtype(t, dtype)
    half = t.dtype in dt.HALF and wanted == t.dtype.np
    work = cast(t, "float32" if half else wanted)
    middle = (
        mean_of(work, axes, True, None, where) if mean is None else cast(to_tensor(mean, device=t.device), work.dtype)
    )
    d = work - middle
    squares = F.real(d) ** 2 + F.imag(d) ** 2 if d.dtype.is_complex else d * d
    total = reduce_by(UFUNCS["add"], squares, axes, None, True, None, where)
    count = _counted(work, axes, where)
    if isinstance(count, int):
        left = builtins.max(count - ddof, 0)
        value = total / left if left else total * math.nan if not count or count <= ddof else total
        value = F.where(F.isnan(total / 1), value, total / 0.0) if not left and count else value
    else:
        value = total / F.clamp(count - ddof, min=0)
    value = value if keep else _dropped(value, axes)
    return cast(value, wanted if wanted.kind != "c" else value.dtype)


def var(
    a: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The variance along axes.

    >>> votive.np.var([1, 3])
    array(1.)
    """
    t = to_tensor(a)
    ddof = _correction(ddof, correction)
    mean = None if mean is NOT_GIVEN else mean
    value = variance_of(t, axes_of(axis, t.ndim), bool(_given(keepdims, False)), ddof, dtype, _given(where, True), mean)
    return finished("mean", value, out)


def _correction(ddof: Any, correction: Any) -> Any:
    if correction is None or correction is NOT_GIVEN:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def std(
    a: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The standard deviation along axes.

    >>> votive.np.std([1, 3])
    array(1.)
    """
    t = to_tensor(a)
    ddof = _correction(ddof, correction)
    mean = None if mean is NOT_GIVEN else mean
    value = variance_of(t, axes_of(axis, t.ndim), bool(_given(keepdims, False)), ddof, dtype, _given(where, True), mean)
    return finished("mean", F.sqrt(value), out)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The mean with weights.

    >>> votive.np.average([1, 3], weights=[3, 1])
    array(1.5)
    """
    x = wrap(to_tensor(a))
    if weights is None:
        found = mean(x, axis, keepdims=keepdims)
        return (found, wrap(F.full_like(found.tensor, x.size / builtins.max(found.size, 1)))) if returned else found
    w = wrap(to_tensor(weights, device=x.device))
    if x.shape != w.shape:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        axes = axes_of(axis, x.ndim)
        if w.shape != tuple(x.shape[i] for i in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        order = sorted(range(len(axes)), key=lambda i: axes[i])
        t = w.tensor.permute(*order)
        w = wrap(t.reshape(tuple(n if i in axes else 1 for i, n in enumerate(x.shape))))
    meet = promoted(x, w) if x.dtype.kind in "fcV" else promoted(x, w, wrap(F.zeros((), dtype=dt.float64)))
    scale = sum(wrap(F.broadcast_to(w.tensor, x.shape)), axis, dtype=meet, keepdims=keepdims)
    if bool((scale == 0).any()):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    found = sum(UFUNCS["multiply"](x, w, dtype=meet), axis, keepdims=keepdims) / scale
    return (found, scale) if returned else found
