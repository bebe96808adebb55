"""Histograms in one and several dimensions; weights may require a gradient."""

from __future__ import annotations

import builtins
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .array import ndarray, wrap
from .convert import Tensor, cast, detached, to_tensor
from .element_types import FLOAT64


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges of the bins of `histogram`."""
    given = bins if isinstance(bins, (int, str)) else detached(bins)
    w = None if weights is None else detached(weights)
    return wrap(to_tensor(numpy.histogram_bin_edges(detached(a), given, range, w), device=to_tensor(a).device))


def _bins(values: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The bin of each value, and whether it has one; the last edge belongs to the last bin."""
    n = int(edges.shape[0]) - 1
    at = F.searchsorted(edges.contiguous(), values.contiguous(), right=True) - 1
    at = F.where(F.eq(values, edges[-1]), F.full_like(at, n - 1), at)
    return F.clamp(at, 0, max(n - 1, 0)), F.ge(values, edges[0]) & F.le(values, edges[-1])


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[ndarray, ndarray]:
    """How many values lie in each bin, and the edges.

    >>> votive.np.histogram([1, 2, 1], bins=[0, 1, 2, 3])
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    t = to_tensor(a).detach()
    edges = histogram_bin_edges(t, bins, range, weights).tensor
    if t.dtype is dt.bool_:
        t = cast(t, "uint8")
    work = FLOAT64 if t.dtype is not dt.float32 or edges.dtype is not dt.float32 else t.dtype.np
    at, inside = _bins(cast(t, work).reshape(-1), cast(edges, work))
    n = int(edges.shape[0]) - 1
    if weights is None:
        counts = F.zeros(n, dtype=dt.int64, device=t.device).index_add(0, at, inside.to(dt.int64))
    else:
        w = to_tensor(weights, device=t.device)
        if tuple(w.shape) != tuple(t.shape):
            raise ValueError("weights should have the same shape as a.")
        w = w.to(dt.int64) if w.dtype is dt.bool_ else w
        w = F.where(inside, w.reshape(-1), F.zeros((), dtype=w.dtype, device=t.device))
        counts = F.index_add(F.zeros(n, dtype=w.dtype, device=t.device), 0, at, w)
    if density:
        widths = cast(edges[1:] - edges[:-1], FLOAT64)
        counts = cast(counts, FLOAT64) / widths / cast(counts.sum(), FLOAT64)
    return wrap(counts), wrap(edges)


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """A histogram of points in several dimensions."""
    if isinstance(sample, (list, tuple)):
        points = F.stack([cast(to_tensor(s), FLOAT64).reshape(-1) for s in sample], 1)
    else:
        points = cast(to_tensor(sample), FLOAT64)
    points = (points if points.ndim == 2 else points.reshape(-1, 1)).detach()
    dims = int(points.shape[1])
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * dims
    if len(each) != dims:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * dims if range is None else list(range)
    edges = [cast(histogram_bin_edges(points[:, i], each[i], ranges[i]).tensor, FLOAT64) for i in builtins.range(dims)]
    sizes = [int(e.shape[0]) - 1 for e in edges]
    flat = F.zeros(int(points.shape[0]), dtype=dt.int64, device=points.device)
    every = F.ones_like(flat).to(dt.bool_)
    for i, e in enumerate(edges):
        at, inside = _bins(points[:, i].contiguous(), e)
        flat, every = flat * sizes[i] + at, every & inside
    w = (
        F.ones(int(points.shape[0]), dtype=dt.float64, device=points.device)
        if weights is None
        else to_tensor(weights, FLOAT64, points.device)
    )
    w = F.where(every, w, F.zeros_like(w))
    counts = F.index_add(F.zeros(int(numpy.prod(sizes)), dtype=dt.float64, device=points.device), 0, flat, w)
    counts = counts.reshape(tuple(sizes))
    if density:
        total = counts.sum()
        for i, e in enumerate(edges):
            counts = counts / (e[1:] - e[:-1]).reshape((-1,) + (1,) * (dims - i - 1))
        counts = counts / total
    return wrap(counts), tuple(wrap(e) for e in edges)


def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """A histogram of points in two dimensions."""
    if to_tensor(x).numel() != to_tensor(y).numel():
        raise ValueError("x and y must have the same length.")
    if (isinstance(bins, (list, tuple)) and len(bins) not in (1, 2)) or isinstance(bins, ndarray):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]
