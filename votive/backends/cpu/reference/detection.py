"""Non-maximum suppression, maxima and sums of regions, one box, bin or region at a time."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_survivors")
def survivors(boxes: Array, group: Array, threshold: float) -> Array:
    """Each survivor strikes out at once all later boxes that it covers too much of."""
    keep = np.zeros(len(boxes), bool)
    x1, y1, x2, y2 = boxes.T
    area = (x2 - x1) * (y2 - y1)
    rest = np.arange(len(boxes))
    zero = boxes.dtype.type(0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        while len(rest):
            i, rest = rest[0], rest[1:]
            keep[i] = True
            wide = np.maximum(np.minimum(x2[i], x2[rest]) - np.maximum(x1[i], x1[rest]), zero)
            high = np.maximum(np.minimum(y2[i], y2[rest]) - np.maximum(y1[i], y1[rest]), zero)
            inter = wide * high
            overlap = inter / (area[i] + area[rest] - inter)
            # Not `<=`: two boxes without area give NaN, and do not cover each other. In double, so
            # that the threshold is not rounded to the type of the boxes.
            covered = overlap.astype(np.float64) > threshold
            rest = rest[~(covered & (group[rest] == group[i]))]
    return keep


@kernel("_region_argmax")
def region_argmax(x: Array, image: Array, top: Array, bottom: Array, left: Array, right: Array) -> Array:
    """Bins may overlap and differ in size, so each is searched by itself."""
    channels, width = x.shape[1], x.shape[3]
    out = np.full((len(image), channels, top.shape[1], left.shape[1]), -1, np.int64)
    for k, n in enumerate(image):
        for i, (t, b) in enumerate(zip(top[k], bottom[k])):
            for j, (l, r) in enumerate(zip(left[k], right[k])):
                if b > t and r > l:
                    best = x[n, :, t:b, l:r].reshape(channels, -1).argmax(1)
                    out[k, :, i, j] = (t + best // (r - l)) * width + l + best % (r - l)
    return out


@kernel("_region_sums")
def region_sums(x: Array, image: Array, by_row: Array, by_column: Array) -> Array:
    out = np.empty((len(image), x.shape[1], by_row.shape[1], by_column.shape[1]), x.dtype)
    for k, n in enumerate(image):
        out[k] = by_row[k] @ x[n] @ by_column[k].T
    return out


@kernel("_region_sums_transpose")
def region_sums_transpose(g: Array, image: Array, by_row: Array, by_column: Array, batch: int) -> Array:
    out = np.zeros((batch, g.shape[1], by_row.shape[2], by_column.shape[2]), g.dtype)
    for k, n in enumerate(image):
        out[n] += by_row[k].T @ g[k] @ by_column[k]
    return out
