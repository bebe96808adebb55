"""Sliding windows over arrays: a strided view of them, and their sum back into place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...base import kernel


def windows(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, places: Any) -> Any:
    """(..., *size) seen as (..., *kernel, *places); the padding is zeros."""
    n = len(kernel)
    lead = x.ndim - n
    reach = [(o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(places, stride, dilation, kernel)]
    after = [max(0, r - p - i) for r, p, i in zip(reach, padding, x.shape[lead:])]
    if any(padding) or any(after):
        x = np.pad(x, [(0, 0)] * lead + list(zip(padding, after)))
    steps = x.strides[lead:]
    return as_strided(
        x,
        (*x.shape[:lead], *kernel, *places),
        (
            *x.strides[:lead],
            *(st * d for st, d in zip(steps, dilation)),
            *(st * s for st, s in zip(steps, stride)),
        ),
        writeable=False,
    )


def add_windows(cols: Any, size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """The transpose of `windows`: (..., *kernel, *places) added up to (..., *size)."""
    n = len(size)
    lead, places = cols.shape[: -2 * n], cols.shape[-n:]
    kernel = cols.shape[-2 * n : -n]
    if cols.size == 0:
        return np.zeros((*lead, *size), cols.dtype)
    reach = [(o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(places, stride, dilation, kernel)]
    whole = [max(r, p + i) for r, p, i in zip(reach, padding, size)]
    out = np.zeros((*lead, *whole), cols.dtype)
    for at in np.ndindex(*kernel):
        hit = tuple(
            slice(k * d, k * d + (o - 1) * s + 1, s)
            for k, d, o, s in zip(at, dilation, places, stride)
        )
        out[(..., *hit)] += cols[(..., *at, *(slice(None),) * n)]
    return out[(..., *(slice(p, p + i) for p, i in zip(padding, size)))]


def places_of(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """How many windows fit into each dimension."""
    return [
        (i + 2 * p - d * (k - 1) - 1) // s + 1
        for i, k, s, p, d in zip(size, kernel, stride, padding, dilation)
    ]


@kernel("_unfold", widen=False)
def unfold(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    places = places_of(x.shape[2:], kernel, stride, padding, dilation)
    columns = windows(x, kernel, stride, padding, dilation, places)
    return columns.reshape(x.shape[0], x.shape[1] * math.prod(kernel), math.prod(places))


@kernel("_fold")
def fold(x: Any, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    places = places_of(size, kernel, stride, padding, dilation)
    cols = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), *kernel, *places)
    return add_windows(cols, size, stride, padding, dilation)
