"""Binary search and counting on NumPy. Knows arrays, no gradients."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ....core.device import cpu
from ....core.errors import fail
from ....core.layout import Layout, Spec
from ...base import kernel
from ..arrays import Array


@kernel("_searchsorted")
def searchsorted(bounds: Array, x: Array, sorter: Array | None, right: bool, dtype: dt.dtype) -> Array:
    if sorter is not None:
        if sorter.size and (sorter.min() < 0 or sorter.max() >= bounds.shape[-1]):
            fail(RuntimeError, "searchsorted", "a sorter index is out of range.")
        bounds = np.take_along_axis(bounds, sorter, -1)
    common = np.promote_types(bounds.dtype, x.dtype)
    bounds, values = bounds.astype(common), x.astype(common)
    read = bounds.take if bounds.ndim == 1 else lambda at: np.take_along_axis(bounds, at, -1)
    low = np.zeros(x.shape, np.int64)
    high = np.full(x.shape, bounds.shape[-1], np.int64)
    # All searches take the same steps, so rows and NaN need no care of their own: a comparison with
    # NaN fails, which moves right.
    for _ in range(int(bounds.shape[-1]).bit_length()):
        middle = (low + high) // 2
        found = read(np.minimum(middle, bounds.shape[-1] - 1))
        goes_right = ~(found > values if right else found >= values) & (low < high)
        low = np.where(goes_right, middle + 1, low)
        high = np.where(goes_right, high, middle)
    return low


@kernel("_bincount")
def bincount(x: Array, weights: Array | None, minlength: int) -> Array:
    if x.size == 0:
        return np.zeros(minlength, np.int64)
    if x.min() < 0:
        fail(RuntimeError, "bincount", f"values must not be negative, got {x.min()}.")
    size = max(int(x.max()) + 1, minlength)
    Spec(Layout((size,)), dt.int64, cpu)  # raises where 64 bits cannot count the bytes
    counts = np.bincount(x.astype(np.int64), weights, size)
    return counts if weights is None else counts.astype(weights.dtype)


@kernel("_histc")
def histc(x: Array, bins: int, low: float, high: float) -> Array:
    values = x.reshape(-1)
    low, high = values.dtype.type(low), values.dtype.type(high)
    inside = values[(values >= low) & (values <= high)]
    at = ((inside - low) * bins / (high - low)).astype(np.int64)
    # The last bin includes its right edge.
    return np.bincount(np.minimum(at, bins - 1), minlength=bins)


@kernel("_histogram")
def histogram(x: Array, edges: list[Array], weight: Array | None) -> Array:
    inside = np.ones(len(x), bool)
    at = np.zeros(len(x), np.int64)
    for d, e in enumerate(edges):
        values, bins = x[:, d], e.size - 1
        inside &= (values >= e[0]) & (values <= e[-1])
        found = np.searchsorted(e, values, side="right") - 1
        # The last bin includes its right edge.
        at = at * bins + np.clip(found, 0, bins - 1)
    shape = tuple(e.size - 1 for e in edges)
    total = np.bincount(at[inside], None if weight is None else weight[inside], int(np.prod(shape)))
    return total.reshape(shape)
