"""Convolution as products of matrices with columns of windows, a few samples at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import kernel
from .fold import add_windows, places_of, windows

# Columns of as many samples as fit here are laid out at once: products stay large, memory bounded.
_BLOCK_BYTES = 1 << 24


def _blocks(samples: int, per_sample: int) -> Iterator[slice]:
    step = max(1, _BLOCK_BYTES // max(per_sample, 1))
    for start in range(0, samples, step):
        yield slice(start, start + step)


def _grouped_weight(weight: Any, groups: int) -> Any:
    """(groups, out channels, in channels * kernel)."""
    return weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))


def _columns(
    x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, places: Any, groups: int
) -> Any:
    """Windows of (N, C, ...) as (N, groups, channels * kernel, windows)."""
    cols = windows(x, kernel, stride, padding, dilation, places)
    rows = x.shape[1] // groups * math.prod(kernel)
    return cols.reshape(len(x), groups, rows, math.prod(places))


def _by_group(x: Any, groups: int) -> Any:
    """(N, C, ...) as (N, groups, channels, positions)."""
    n, channels = x.shape[:2]
    return np.ascontiguousarray(x).reshape(n, groups, channels // groups, math.prod(x.shape[2:]))


def _add_bias(y: Any, bias: Any) -> Any:
    return y if bias is None else np.add(y, bias.reshape(-1, *(1,) * (y.ndim - 2)), out=y)


@kernel("_convolution")
def convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    size = weight.shape[2:]
    places = places_of(x.shape[2:], size, stride, padding, dilation)
    w = _grouped_weight(weight, groups)
    out = np.empty((len(x), len(weight), *places), x.dtype)
    grouped = out.reshape(len(x), groups, len(weight) // groups, math.prod(places))
    for part in _blocks(len(x), w[0, 0].nbytes * groups * math.prod(places)):
        cols = _columns(x[part], size, stride, padding, dilation, places, groups)
        np.matmul(w, cols, out=grouped[part])
    return _add_bias(out, bias)


@kernel("_convolution_transpose")
def convolution_transpose(
    x: Any, weight: Any, bias: Any, size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    kernel, places = weight.shape[2:], x.shape[2:]
    w = np.ascontiguousarray(np.swapaxes(_grouped_weight(weight, groups), 1, 2))
    out = np.empty((len(x), weight.shape[1] * groups, *size), x.dtype)
    for part in _blocks(len(x), w[0, :, :1].nbytes * groups * math.prod(places)):
        cols = np.matmul(w, _by_group(x[part], groups))
        cols = cols.reshape(len(cols), out.shape[1], *kernel, *places)
        out[part] = add_windows(cols, size, stride, padding, dilation)
    return _add_bias(out, bias)


@kernel("_convolution_weight")
def convolution_weight(
    x: Any, grad: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    places = grad.shape[2:]
    per_group = x.shape[1] // groups
    rows = per_group * math.prod(kernel)
    out = np.zeros((groups, grad.shape[1] // groups, rows), x.dtype)
    for part in _blocks(len(x), rows * groups * math.prod(places) * x.itemsize):
        cols = _columns(x[part], kernel, stride, padding, dilation, places, groups)
        out += np.matmul(_by_group(grad[part], groups), np.swapaxes(cols, -2, -1)).sum(0)
    return out.reshape(grad.shape[1], per_group, *kernel)
