"""Convolution tap by tap: each is a product of matrices with what it reads of the input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base import kernel
from ...common.windows import places_of
from ..arrays import Array, Ints
from .fold import taps


def _by_group(x: Array, groups: int) -> Any:
    """(N, C, ...) as (N, groups, channels, ...)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


def _product(w: Array, x: Array) -> Any:
    """(groups, out, in) times (N, groups, in, ...): a matrix at every position of every group."""
    flat = x.reshape(*x.shape[:3], math.prod(x.shape[3:]))
    return np.matmul(w, flat).reshape(x.shape[0], *w.shape[:2], *x.shape[3:])


def _add_bias(y: Array, bias: Array | None) -> Any:
    return y if bias is None else np.add(y, bias.reshape(-1, *(1,) * (y.ndim - 2)), out=y)


@kernel("_convolution")
def convolution(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    size, kernel = x.shape[2:], weight.shape[2:]
    places = places_of(size, kernel, stride, padding, dilation)
    out = np.zeros((len(x), len(weight), *places), x.dtype)
    to, given = _by_group(out, groups), _by_group(x, groups)
    w = weight.reshape(groups, len(weight) // groups, *weight.shape[1:])
    for tap, at, source in taps(size, kernel, stride, padding, dilation, places):
        to[(..., *at)] += _product(w[(..., *tap)], given[(..., *source)])
    return _add_bias(out, bias)


@kernel("_convolution_transpose")
def convolution_transpose(
    x: Array, weight: Array, bias: Array | None, size: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    kernel, places = weight.shape[2:], x.shape[2:]
    out = np.zeros((len(x), weight.shape[1] * groups, *size), x.dtype)
    to, given = _by_group(out, groups), _by_group(x, groups)
    w = weight.reshape(groups, len(weight) // groups, *weight.shape[1:]).swapaxes(1, 2)
    for tap, at, source in taps(size, kernel, stride, padding, dilation, places):
        to[(..., *source)] += _product(w[(..., *tap)], given[(..., *at)])
    return _add_bias(out, bias)


@kernel("_convolution_weight")
def convolution_weight(
    x: Array, grad: Array, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    size, places = x.shape[2:], grad.shape[2:]
    given, by = _by_group(x, groups), _by_group(grad, groups)
    out = np.zeros((groups, by.shape[2], given.shape[2], *kernel), x.dtype)
    for tap, at, source in taps(size, kernel, stride, padding, dilation, places):
        # (groups, channels, samples and positions): one product adds up over both.
        a, b = (
            np.moveaxis(t, 0, 2).reshape(groups, t.shape[2], len(t) * math.prod(t.shape[3:]))
            for t in (by[(..., *at)], given[(..., *source)])
        )
        out[(..., *tap)] = np.matmul(a, b.swapaxes(1, 2))
    return out.reshape(grad.shape[1], given.shape[2], *kernel)
