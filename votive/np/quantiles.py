"""Medians, quantiles and percentiles by all of NumPy's methods; differentiable in the values."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..ops.registry import F
from .convert import Tensor, cast, detached, result, to_tensor
from .element_types import FLOAT64
from .layout import axes_of
from .reductions import finished
from .searching import _sorted

# Hyndman and Fan (1996): position = n q + (alpha + q (1 - alpha - beta)) - 1, then interpolated.
_CONTINUOUS = {
    "linear": (1.0, 1.0),
    "weibull": (0.0, 0.0),
    "hazen": (0.5, 0.5),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    "interpolated_inverted_cdf": (0.0, 1.0),
}
_DISCRETE = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "lower", "higher", "midpoint", "nearest")


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The middle value, or the mean of both.

    >>> votive.np.median([3, 1, 2])
    array(2.)
    """
    return _along(a, 0.5, axis, out, "midpoint", keepdims, None, False)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """The value below which a part `q` of the values lies.

    >>> votive.np.quantile([1, 2, 3, 4], 0.5)
    array(2.5)
    """
    return _along(a, q, axis, out, method, keepdims, weights, False)


def _percent(q: Any) -> Any:
    return q / 100 if isinstance(q, (int, float)) else detached(q) / 100


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Quantiles by parts of a hundred.

    >>> votive.np.percentile([1, 2, 3, 4], 50)
    array(2.5)
    """
    return _along(a, _percent(q), axis, out, method, keepdims, weights, False)


def _along(a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: bool, weights: Any, skip_nan: bool) -> Any:
    t = to_tensor(a)
    if t.dtype.is_complex:
        raise TypeError("a must be an array of real numbers")
    if method not in _CONTINUOUS and method not in _DISCRETE:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {[*_CONTINUOUS, *_DISCRETE]}")
    if weights is not None:
        return _weighted(t, q, axis, out, method, keepdims, weights, skip_nan)
    parts = numpy.asarray(q if isinstance(q, (int, float, list, tuple)) else detached(q), dtype=numpy.float64)
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    axes = axes_of(axis, t.ndim)
    rest = [i for i in range(t.ndim) if i not in axes]
    kept = tuple(int(t.shape[i]) for i in rest)
    lines = (t.permute(*rest, *axes) if t.ndim else t).reshape((*kept, -1))
    if not lines.dtype.is_inexact and method not in (
        "inverted_cdf",
        "closest_observation",
        "lower",
        "higher",
        "nearest",
    ):
        lines = cast(lines, FLOAT64)
    if lines.shape[-1] == 0:
        if axis is None or kept == ():
            found = F.full((*parts.shape, *kept), math.nan, dtype=lines.dtype, device=t.device)
        else:
            raise IndexError("index -1 is out of bounds for axis with size 0")
    else:
        found = (
            F.stack([_one(lines, float(p), method, skip_nan) for p in parts.reshape(-1)])
            if parts.size
            else lines[..., 0][None][:0]
        )
        found = found.reshape((*parts.shape, *kept))
    if keepdims:
        shape = tuple(1 if i in axes else int(n) for i, n in enumerate(t.shape))
        found = found.reshape((*parts.shape, *shape))
    return finished("mean", found, out) if out is not None else result(found)


def _one(lines: Tensor, q: float, method: str, skip_nan: bool) -> Tensor:
    """One quantile of each line; NaN, sorted to the end, either decides or is not counted."""
    line = _sorted(lines, lines.ndim - 1, False)
    size = int(line.shape[-1])
    if not line.dtype.is_inexact:
        low, high, part = _place(q, size, method)
        return _between(line[..., low], line[..., high], part)
    bad = F.isnan(line)
    if not skip_nan or not bool(bad.any()):
        low, high, part = _place(q, size, method)
        found = _between(line[..., low], line[..., high], part)
        return F.where(bad[..., -1], F.full_like(found, math.nan), found)
    counts = size - detached(bad.sum(-1))
    places = [_place(q, int(n), method) if n else (0, 0, 0.0) for n in counts.reshape(-1)]
    ends = [numpy.asarray(v).reshape(counts.shape) for v in zip(*places, strict=True)]
    take = [F.take_along_dim(line, to_tensor(i, "int64", line.device).unsqueeze(-1), -1).squeeze(-1) for i in ends[:2]]
    return _between(take[0], take[1], to_tensor(ends[2], line.dtype.np, line.device))


def _between(a: Tensor, b: Tensor, part: Any) -> Tensor:
    if isinstance(part, float) and part in (0.0, 1.0):
        return a if part == 0.0 else b
    # From the nearer end, so that the result never leaves the two values.
    near, far = a + (b - a) * part, b - (b - a) * (1 - part)
    if isinstance(part, float):
        return near if part < 0.5 else far
    mixed = F.where(F.lt(part, 0.5), near, far)
    return F.where(F.eq(a, b) | F.eq(part, 0), a, mixed)


def _place(q: float, n: int, method: str) -> tuple[int, int, float]:
    """The two neighbours in order, and how far between them."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        at = (n - 1) * q if method == "linear" else n * q + (alpha + q * (1 - alpha - beta)) - 1
        at = min(max(at, 0.0), n - 1.0)
        low = math.floor(at)
        return low, min(low + 1, n - 1), at - low
    at = (n - 1) * q
    if method in ("lower", "higher", "nearest", "midpoint"):
        low, high = math.floor(at), math.ceil(at)
        if method == "midpoint":
            return low, high, 0.5 if low != high else 0.0
        i = {"lower": low, "higher": high, "nearest": round(at)}[method]
        return i, i, 0.0
    at = n * q - 1
    low = math.floor(at)
    if method == "inverted_cdf":
        i = low if at == low else low + 1
        i = min(max(i, 0), n - 1)
        return i, i, 0.0
    if method == "averaged_inverted_cdf":
        first, part = (low, 0.5) if at == low else (low, 1.0)
        return min(max(first, 0), n - 1), min(max(low + 1, 0), n - 1), part
    at = n * q - 1 - 0.5  # closest_observation
    low = math.floor(at)
    i = low if at == low and low % 2 == 1 else low + 1
    i = min(max(i, 0), n - 1)
    return i, i, 0.0


def _weighted(t: Tensor, q: Any, axis: Any, out: Any, method: str, keepdims: bool, weights: Any, skip_nan: bool) -> Any:
    from .convert import host

    if method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    fn: Any = numpy.nanquantile if skip_nan else numpy.quantile
    w, parts = detached(weights), q if isinstance(q, (int, float)) else detached(q)

    def run(values: Any) -> Any:
        return fn(values, parts, axis=axis, method=method, keepdims=keepdims, weights=w)

    return finished("mean", host("quantile", run, t), out)
