"""Resampling by a filter for each phase, tap by tap. Knows arrays only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array


def _places(length: int, size: int, orig: int, offset: int, new: int, taps: int) -> Iterator[tuple[int, Any, Any, Any]]:
    """For each tap: its number, the results that it serves, their phases and what they read."""
    n = np.arange(length)
    base = n * orig // new - offset
    for k in range(taps):
        inside = (base + k >= 0) & (base + k < size)
        yield k, n[inside], n[inside] % new, base[inside] + k


@kernel("_polyphase")
def polyphase(x: Array, weight: Array, orig: int, offset: int, length: int) -> Array:
    out = np.zeros((x.shape[0], length), x.dtype)
    for k, n, phase, m in _places(length, x.shape[1], orig, offset, *weight.shape):
        out[:, n] += weight[phase, k] * x[:, m]
    return out


@kernel("_polyphase_transposed")
def polyphase_transposed(g: Array, weight: Array, orig: int, offset: int, length: int) -> Array:
    out = np.zeros((g.shape[0], length), g.dtype)
    for k, n, phase, m in _places(g.shape[1], length, orig, offset, *weight.shape):
        np.add.at(out.T, m, (weight[phase, k] * g[:, n]).T)
    return out


@kernel("_polyphase_products")
def polyphase_products(g: Array, x: Array, orig: int, offset: int, new: int, taps: int) -> Array:
    out = np.zeros((new, taps), x.dtype)
    for k, n, phase, m in _places(g.shape[1], x.shape[1], orig, offset, new, taps):
        np.add.at(out[:, k], phase, (g[:, n] * x[:, m]).sum(0))
    return out
