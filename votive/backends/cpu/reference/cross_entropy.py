"""Kernels of cross entropy. Half types arrive as float32. A target outside the classes is an
IndexError, unless it is the ignored one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ..arrays import Array, Ints


def _dim(x: Array) -> int:
    return 1 if x.ndim > 1 else 0


def _targets(op: str, t: Array, classes: int, ignore: int) -> tuple[Any, Any]:
    """(class indices that are safe to look up, which of them count)."""
    used = t != ignore
    wrong = used & ((t < 0) | (t >= classes))
    if wrong.any():
        raise IndexError(
            f"{op}: target {t[wrong].flat[0]} is out of range for {classes} classes; "
            f"use 0..{classes - 1} or ignore_index={ignore}."
        )
    return np.where(used, t, 0).astype(np.int64), used


def _column(v: Array, ndim: int) -> Any:
    """A vector over the classes, shaped to broadcast along their dimension."""
    return v.reshape([-1 if d == (1 if ndim > 1 else 0) else 1 for d in range(ndim)])


def _picked(op: str, x: Array, t: Array, weight: Array | None, ignore: int, smoothing: float) -> Any:
    """`sum_c q_c x_c` for each target."""
    dim = _dim(x)
    classes = x.shape[dim]
    at, used = _targets(op, t, classes, ignore)
    if not classes:
        return np.zeros(t.shape, x.dtype)
    picked = np.take_along_axis(x, np.expand_dims(at, dim), dim).squeeze(dim)
    if weight is not None:
        picked = picked * weight[at]
    if smoothing:
        weighted = x if weight is None else x * _column(weight, x.ndim)
        share = x.dtype.type(smoothing / classes)
        picked = x.dtype.type(1 - smoothing) * picked + share * weighted.sum(dim)
    return np.where(used, picked, x.dtype.type(0))


def _spread(op: str, g: Array, t: Array, weight: Array | None, ignore: int, smoothing: float, shape: Ints) -> Any:
    """`g q`: what `_picked` takes from each class, put back."""
    out = np.zeros(shape, g.dtype)
    dim = _dim(out)
    classes = shape[dim]
    at, used = _targets(op, t, classes, ignore)
    if not out.size:
        return out
    g = np.where(used, g, g.dtype.type(0))
    own = g if weight is None else g * weight[at]
    own = np.expand_dims(own * g.dtype.type(1 - smoothing), dim)
    np.put_along_axis(out, np.expand_dims(at, dim), own, dim)
    if smoothing:
        share = np.expand_dims(g * g.dtype.type(smoothing / classes), dim)
        out += share if weight is None else share * _column(weight, len(shape))
    return out


@kernel("_nll")
def nll(x: Array, t: Array, weight: Array | None, ignore: int, smoothing: float, dtype: dtype) -> Array:
    return -_picked("nll_loss", x, t, weight, ignore, smoothing)


@kernel("_nll_backward")
def nll_backward(
    g: Array, t: Array, weight: Array | None, ignore: int, smoothing: float, size: Ints, dtype: dtype
) -> Array:
    return -_spread("nll_loss", g, t, weight, ignore, smoothing, size)


def _weight_of(t: Array, weight: Array | None, ignore: int, dtype: np.dtype[Any]) -> Any:
    """The weight of all targets that count."""
    used = t != ignore
    if weight is None:
        return dtype.type(used.sum())
    return np.sum(weight[np.where(used, t, 0)] * used, dtype=np.float64).astype(dtype)


def _reduced(losses: Array, total: Array, mean: bool) -> Any:
    loss = losses.sum(dtype=np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(loss / total if mean else loss)


@kernel("_nll_reduced")
def nll_reduced(x: Array, t: Array, weight: Array | None, ignore: int, mean: bool) -> tuple[Array, ...]:
    losses = -_picked("nll_loss", x, t, weight, ignore, 0.0)
    total = _weight_of(t, weight, ignore, x.dtype)
    return _reduced(losses, total, mean), np.asarray(total)


def _per_target(g: Array, total: Array, t: Array, mean: bool) -> Any:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(g / total if mean else g, dtype=total.dtype), t.shape)


@kernel("_nll_reduced_backward")
def nll_reduced_backward(
    g: Array, total: Array, t: Array, weight: Array | None, ignore: int, mean: bool, size: Ints, dtype: dtype
) -> Array:
    return -_spread("nll_loss", _per_target(g, total, t, mean), t, weight, ignore, 0.0, size)


@kernel("_cross_entropy")
def cross_entropy(
    x: Array, t: Array, weight: Array | None, ignore: int, smoothing: float, dtype: dtype | None = None
) -> Array:
    dim = _dim(x)
    if not x.size:
        _targets("cross_entropy", t, x.shape[dim], ignore)
        return np.zeros(t.shape, x.dtype)
    # Shift by the max first: subtracting logsumexp directly rounds the normaliser away.
    shifted = x - x.max(dim, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))
    return -_picked("cross_entropy", log_p, t, weight, ignore, smoothing)


@kernel("_cross_entropy_backward")
def cross_entropy_backward(g: Array, x: Array, t: Array, weight: Array | None, ignore: int, smoothing: float) -> Array:
    if not x.size:
        return np.zeros(x.shape, x.dtype)
    dim = _dim(x)
    q = _spread("cross_entropy", g, t, weight, ignore, smoothing, x.shape)
    e = np.exp(x - x.max(dim, keepdims=True))
    scale = q.sum(dim, keepdims=True) / e.sum(dim, keepdims=True)
    return e * scale - q


@kernel("_cross_entropy_reduced")
def cross_entropy_reduced(
    x: Array, t: Array, weight: Array | None, ignore: int, smoothing: float, mean: bool
) -> tuple[Array, ...]:
    losses = cross_entropy(x, t, weight, ignore, smoothing)
    total = _weight_of(t, weight, ignore, x.dtype)
    statistics = np.zeros((2, *t.shape), x.dtype)
    if x.size:
        dim = _dim(x)
        statistics[0] = x.max(dim)
        statistics[1] = np.exp(x - x.max(dim, keepdims=True)).sum(dim)
    return _reduced(losses, total, mean), np.asarray(total), statistics


@kernel("_cross_entropy_reduced_backward")
def cross_entropy_reduced_backward(
    g: Array,
    x: Array,
    t: Array,
    weight: Array | None,
    total: Array,
    statistics: Array,
    ignore: int,
    smoothing: float,
    mean: bool,
) -> Array:
    each = _per_target(g, total, t, mean)
    return cross_entropy_backward(each, x, t, weight, ignore, smoothing)
