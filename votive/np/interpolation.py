"""Differences, integrals, interpolation and convolution of sampled functions."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .array import ndarray, wrap
from .convert import Tensor, cast, result, tensors, to_tensor
from .element_types import FLOAT64, promoted
from .layout import axes_of, axis_of
from .reductions import NOT_GIVEN
from .ufunc_table import UFUNCS


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> ndarray:
    """Differences of neighbours, `n` times.

    >>> votive.np.diff([1, 4, 9])
    array([3, 5])
    """
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    t = to_tensor(a)
    if n == 0:
        return wrap(t)
    if t.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    dim = axis_of(axis, t.ndim)
    ends: list[Tensor | None] = []
    for end in (prepend, append):
        if end is NOT_GIVEN or end is None:
            ends.append(None)
            continue
        e = to_tensor(end, device=t.device)
        if e.ndim == 0:
            shape = list(t.shape)
            shape[dim] = 1
            e = e.expand(shape)
        ends.append(e)
    parts = [p for p in (ends[0], t, ends[1]) if p is not None]
    meet = promoted(*parts)
    t = F.cat([cast(p, meet) for p in parts], dim) if len(parts) > 1 else t
    fn = UFUNCS["not_equal" if t.dtype is dt.bool_ else "subtract"]
    for _ in range(n):
        m = int(t.shape[dim])
        t = fn(t.narrow(dim, min(1, m), max(m - 1, 0)), t.narrow(dim, 0, max(m - 1, 0))).tensor
    return wrap(t)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Differences of all neighbours in one line."""
    t = to_tensor(ary).reshape(-1)
    parts = [to_begin, diff(wrap(t)) if t.numel() else wrap(t), to_end]
    for p in (to_begin, to_end):
        if p is not None and not numpy.can_cast(to_tensor(p).dtype.np, t.dtype.np, "same_kind"):
            raise TypeError("dtype of `to_begin` and `to_end` must be compatible with input `ary`")
    return wrap(F.cat([cast(to_tensor(p, device=t.device), t.dtype.np).reshape(-1) for p in parts if p is not None]))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes by central differences, and one-sided ones at the ends.

    >>> votive.np.gradient([1.0, 4.0, 9.0])
    array([3., 4., 5.])
    """
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    t = to_tensor(f)
    axes = axes_of(axis, t.ndim)
    if len(varargs) == 0:
        steps: list[Any] = [1.0] * len(axes)
    elif len(varargs) == 1 and to_tensor(varargs[0]).ndim == 0:
        steps = [varargs[0]] * len(axes)
    elif len(varargs) == len(axes):
        steps = list(varargs)
    else:
        raise TypeError("invalid number of arguments")
    t = t if t.dtype.is_inexact else cast(t, FLOAT64)
    out = [wrap(F.movedim(_slope(F.movedim(t, i, -1), h, edge_order), -1, i)) for i, h in zip(axes, steps, strict=True)]
    return out[0] if len(axes) == 1 else tuple(out)


def _slope(y: Tensor, step: Any, order: int) -> Tensor:
    n = int(y.shape[-1])
    if n < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least edge_order + 1 elements are required."
        )
    h = cast(to_tensor(step, device=y.device), FLOAT64 if not y.dtype.is_inexact else y.dtype.to_real().np)
    if h.ndim == 0:
        d = h.expand(n - 1)
    else:
        if h.ndim != 1 or h.shape[0] != n:
            raise ValueError("when 1d, distances must match the length of the corresponding dimension")
        d = h[1:] - h[:-1]
    one, two = d[:-1], d[1:]
    a, b, c = -two / (one * (one + two)), (two - one) / (one * two), one / (two * (one + two))
    inner = a * y[..., :-2] + b * y[..., 1:-1] + c * y[..., 2:]
    if h.ndim == 0:
        inner = (y[..., 2:] - y[..., :-2]) / (2.0 * h)
    if order == 1:
        first, last = (y[..., 1] - y[..., 0]) / d[0], (y[..., -1] - y[..., -2]) / d[-1]
    else:
        p, q = d[0], d[1]
        first = (
            -(2.0 * p + q) / (p * (p + q)) * y[..., 0] + (p + q) / (p * q) * y[..., 1] - p / (q * (p + q)) * y[..., 2]
        )
        p, q = d[-2], d[-1]
        last = (
            q / (p * (p + q)) * y[..., -3] - (q + p) / (p * q) * y[..., -2] + (2.0 * q + p) / (q * (p + q)) * y[..., -1]
        )
    return F.cat([first.unsqueeze(-1), inner, last.unsqueeze(-1)], -1)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by trapezoids.

    >>> votive.np.trapezoid([1, 2, 3])
    array(4.)
    """
    t = to_tensor(y)
    dim = axis_of(axis, t.ndim)
    v = F.movedim(t if t.dtype.is_inexact else cast(t, FLOAT64), dim, -1)
    if x is None:
        d: Any = dx if not hasattr(dx, "__len__") else to_tensor(dx, device=t.device)
    else:
        xs = to_tensor(x, device=t.device)
        d = xs[1:] - xs[:-1] if xs.ndim == 1 else F.movedim(xs, dim, -1)[..., 1:] - F.movedim(xs, dim, -1)[..., :-1]
    products = wrap(v[..., 1:] + v[..., :-1]) * wrap(d) if isinstance(d, Tensor) else wrap(v[..., 1:] + v[..., :-1]) * d
    return result((products / 2.0).sum(-1).tensor)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Values between points by straight lines.

    >>> votive.np.interp(2.5, [1, 2, 3], [3, 2, 0])
    array(1.)
    """
    t = to_tensor(x, FLOAT64)
    points = to_tensor(xp, FLOAT64, t.device)
    values = to_tensor(fp, device=t.device)
    values = cast(values, "complex128" if values.dtype.is_complex else FLOAT64)
    if points.ndim != 1 or values.ndim != 1 or points.shape != values.shape:
        raise ValueError(
            "fp and xp are not of the same length." if points.ndim == 1 else "Data points must be 1-D sequences"
        )
    if not points.numel():
        raise ValueError("array of sample points is empty")
    if period is not None:
        if period == 0:
            raise ValueError("period must be a non-zero value")
        period = abs(period)
        t, points = F.remainder(t, period), F.remainder(points, period)
        order = F.argsort(points.detach())
        points, values = points[order], values[order]
        points = F.cat([points[-1:] - period, points, points[:1] + period])
        values = F.cat([values[-1:], values, values[:1]])
        left = right = None
    n = int(points.shape[0])
    low = to_tensor(values[0] if left is None else left, values.dtype.np, t.device)
    high = to_tensor(values[-1] if right is None else right, values.dtype.np, t.device)
    if n == 1:
        found = values[0].expand(tuple(t.shape))
    else:
        i = F.clamp(F.searchsorted(points.detach().contiguous(), t.detach().contiguous(), right=True) - 1, 0, n - 2)
        x0, x1, y0, y1 = points[i], points[i + 1], values[i], values[i + 1]
        found = y0 + (y1 - y0) / (x1 - x0) * (t - x0)
        found = F.where(F.eq(t, x0), y0, F.where(F.eq(t, x1), y1, found))
        found = F.where(F.eq(t, points[-1]), values[-1], found)
    found = F.where(F.lt(t, points[0]), low, F.where(F.gt(t, points[-1]), high, found))
    return result(F.where(F.isnan(t), F.full_like(found, numpy.nan), found))


def _mode(mode: Any) -> str:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return str(mode)


def _full(a: Tensor, v: Tensor) -> Tensor:
    """All sums of shifted products; differentiable in both."""
    if not a.dtype.is_floating_point or not v.dtype.is_floating_point or a.dtype in dt.HALF:
        # One shifted copy per tap: integers and complex numbers have no convolution kernel.
        n, m = int(a.shape[0]), int(v.shape[0])
        rows = F.arange(m, device=a.device).unsqueeze(1)
        index = F.arange(n + m - 1, device=a.device).unsqueeze(0) - rows
        inside = F.ge(index, 0) & F.lt(index, n)
        taken = F.where(inside, a[F.clamp(index, 0, n - 1)], F.zeros((), dtype=a.dtype, device=a.device))
        from .products import product

        return product(v.unsqueeze(0), taken)[0]
    from ..nn import functional

    out = functional.conv1d(a.reshape(1, 1, -1), v.flip(0).reshape(1, 1, -1), padding=int(v.shape[0]) - 1)
    return out.reshape(-1)


def convolve(a: Any, v: Any, mode: str = "full") -> ndarray:
    """The convolution of two lines.

    >>> votive.np.convolve([1, 2, 3], [0, 1, 0.5])
    array([0. , 1. , 2.5, 4. , 1.5])
    """
    x, y = tensors(a, v)
    if x.ndim > 1 or y.ndim > 1:
        raise ValueError("object too deep for desired array")
    x, y = x.reshape(-1), y.reshape(-1)
    if not x.numel():
        raise ValueError("a cannot be empty")
    if not y.numel():
        raise ValueError("v cannot be empty")
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    full = _full(x, y)
    n, m = int(x.shape[0]), int(y.shape[0])
    if _mode(mode) == "full":
        return wrap(full)
    if mode == "same":
        start = (m - 1) // 2
        return wrap(full[start : start + n])
    return wrap(full[m - 1 : n])


def correlate(a: Any, v: Any, mode: str = "valid") -> ndarray:
    """Sums of products of one line with the other, conjugated and shifted.

    >>> votive.np.correlate([1, 2, 3], [0, 1, 0.5])
    array([3.5])
    """
    x, y = tensors(a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            "object of too small depth for desired array"
            if min(x.ndim, y.ndim) == 0
            else "object too deep for desired array"
        )
    if not x.numel() or not y.numel():
        raise ValueError(
            "first array argument cannot be empty" if not x.numel() else "second array argument cannot be empty"
        )
    other = F.flip(F.conj_physical(y) if y.dtype.is_complex else y, [0])
    full = _full(x, other) if y.shape[0] <= x.shape[0] else _full(other, x)
    n, m = int(x.shape[0]), int(y.shape[0])
    if _mode(mode) == "full":
        return wrap(full)
    small, large = min(n, m), max(n, m)
    if mode == "valid":
        return wrap(full[small - 1 : large])
    start = (small - 1) // 2 if n >= m else small - 1 - (small - 1) // 2
    return wrap(full[start : start + large])
