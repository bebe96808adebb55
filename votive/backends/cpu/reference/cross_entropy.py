"""Kernels of cross entropy. Half types arrive as float32. A target outside the classes is an
IndexError, unless it is the ignored one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


def _dim(x: Any) -> int:
    return 1 if x.ndim > 1 else 0


def _targets(op: str, t: Any, classes: int, ignore: int) -> tuple[Any, Any]:
    """(class indices that are safe to look up, which of them count)."""
    used = t != ignore
    wrong = used & ((t < 0) | (t >= classes))
    if wrong.any():
        raise IndexError(
            f"{op}: target {t[wrong].flat[0]} is out of range for {classes} classes; "
            f"use 0..{classes - 1} or ignore_index={ignore}."
        )
    return np.where(used, t, 0).astype(np.int64), used


def _column(v: Any, ndim: int) -> Any:
    """A vector over the classes, shaped to broadcast along their dimension."""
    return v.reshape([-1 if d == (1 if ndim > 1 else 0) else 1 for d in range(ndim)])


def _picked(op: str, x: Any, t: Any, weight: Any, ignore: int, smoothing: float) -> Any:
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


def _spread(
    op: str, g: Any, t: Any, weight: Any, ignore: int, smoothing: float, shape: tuple[int, ...]
) -> Any:
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
def nll(x: Any, t: Any, weight: Any, ignore: int, smoothing: float, dtype: Any) -> Any:
    return -_picked("nll_loss", x, t, weight, ignore, smoothing)


@kernel("_nll_backward")
def nll_backward(
    g: Any, t: Any, weight: Any, ignore: int, smoothing: float, size: tuple[int, ...], dtype: Any
) -> Any:
    return -_spread("nll_loss", g, t, weight, ignore, smoothing, size)


@kernel("_cross_entropy")
def cross_entropy(x: Any, t: Any, weight: Any, ignore: int, smoothing: float, dtype: Any) -> Any:
    dim = _dim(x)
    if not x.size:
        _targets("cross_entropy", t, x.shape[dim], ignore)
        return np.zeros(t.shape, x.dtype)
    # Shift by the max first: subtracting logsumexp directly rounds the normaliser away.
    shifted = x - x.max(dim, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))
    return -_picked("cross_entropy", log_p, t, weight, ignore, smoothing)


@kernel("_cross_entropy_backward")
def cross_entropy_backward(
    g: Any, x: Any, t: Any, weight: Any, ignore: int, smoothing: float
) -> Any:
    if not x.size:
        return np.zeros(x.shape, x.dtype)
    dim = _dim(x)
    q = _spread("cross_entropy", g, t, weight, ignore, smoothing, x.shape)
    e = np.exp(x - x.max(dim, keepdims=True))
    scale = q.sum(dim, keepdims=True) / e.sum(dim, keepdims=True)
    return e * scale - q
