"""Reductions that leave NaN out."""

from __future__ import annotations

import math
from typing import Any

from ..ops.registry import F
from . import quantiles, reductions, scans
from .convert import Tensor, to_tensor
from .layout import axes_of
from .reductions import NOT_GIVEN, finished, mean_of, variance_of


def _present(t: Tensor) -> Tensor | None:
    return ~F.isnan(t) if t.dtype.is_inexact else None


def _filled(t: Tensor, value: Any) -> Tensor:
    if not t.dtype.is_inexact:
        return t
    return F.where(F.isnan(t), F.full_like(t, value), t)


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Any:
    """The sum of what is not NaN.

    >>> votive.np.nansum([1.0, float("nan")])
    array(1.)
    """
    return reductions.sum(_filled(to_tensor(a), 0), axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOT_GIVEN,
    where: Any = True,
) -> Any:
    """The product of what is not NaN."""
    return reductions.prod(_filled(to_tensor(a), 1), axis, dtype, out, keepdims, initial, where)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of the first values; NaN counts as zero."""
    return scans.cumsum(_filled(to_tensor(a), 0), axis, dtype, out)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of the first values; NaN counts as one."""
    return scans.cumprod(_filled(to_tensor(a), 1), axis, dtype, out)


def _extremum(name: str, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    t = to_tensor(a)
    fn = getattr(reductions, name)
    if not t.dtype.is_inexact:
        return fn(t, axis, out, keepdims, initial, where)
    bound = -math.inf if name == "max" else math.inf
    value = fn(_filled(t, bound), axis, None, keepdims, initial, where).tensor
    axes = axes_of(axis, t.ndim)
    empty = F.isnan(t).all(list(axes), keepdim=bool(keepdims)) if axes else F.isnan(t)
    if initial is NOT_GIVEN:
        value = F.where(empty, F.full_like(value, math.nan), value)
    return finished("maximum", value, out)


def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True
) -> Any:
    """The largest value that is not NaN."""
    return _extremum("max", a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = NOT_GIVEN, where: Any = True
) -> Any:
    """The smallest value that is not NaN."""
    return _extremum("min", a, axis, out, keepdims, initial, where)


def _position(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    t = to_tensor(a)
    if t.dtype.is_inexact:
        bad = F.isnan(t)
        if bool(bad.all(list(axes_of(axis, t.ndim))).any() if t.ndim else bad):
            raise ValueError("All-NaN slice encountered")
    filled = _filled(t, -math.inf if name == "argmax" else math.inf)
    return getattr(scans, name)(filled, axis, out, keepdims=keepdims)


def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the largest value that is not NaN stands."""
    return _position("argmax", a, axis, out, keepdims)


def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Where the smallest value that is not NaN stands."""
    return _position("argmin", a, axis, out, keepdims)


def _mask(t: Tensor, where: Any) -> Any:
    present = _present(t)
    if present is None:
        return True if where in (True, NOT_GIVEN) else where
    if where is True or where is NOT_GIVEN:
        return present
    return present & to_tensor(where, bool, t.device)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """The mean of what is not NaN."""
    t = to_tensor(a)
    return finished("mean", mean_of(t, axes_of(axis, t.ndim), bool(keepdims), dtype, _mask(t, where)), out)


def _variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any, correction: Any
) -> Tensor:
    t = to_tensor(a)
    ddof = reductions._correction(ddof, correction)
    mean = None if mean is NOT_GIVEN else mean
    axes, mask = axes_of(axis, t.ndim), _mask(t, where)
    value = variance_of(_filled(t, 0), axes, bool(keepdims), ddof, dtype, mask, mean)
    if mask is not True:
        count = F.sum(mask.expand(tuple(t.shape)), list(axes), keepdim=bool(keepdims)) if axes else mask
        value = F.where(F.le(count, ddof), F.full_like(value, math.nan), value)
    return value


def nanvar(
    a: Any,
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
    """The variance of what is not NaN."""
    return finished("mean", _variance(a, axis, dtype, ddof, keepdims, where, mean, correction), out)


def nanstd(
    a: Any,
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
    """The standard deviation of what is not NaN."""
    return finished("mean", F.sqrt(_variance(a, axis, dtype, ddof, keepdims, where, mean, correction)), out)


def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """The median of what is not NaN."""
    return quantiles._along(a, 0.5, axis, out, "midpoint", bool(keepdims), None, True)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles of what is not NaN."""
    return quantiles._along(a, q, axis, out, method, bool(keepdims), weights, True)


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """Percentiles of what is not NaN."""
    return quantiles._along(a, quantiles._percent(q), axis, out, method, bool(keepdims), weights, True)
