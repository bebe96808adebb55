"""Attention on NumPy, with all weights at once. Half types arrive as float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.attention import How
from ..arrays import Array, Ints
from .dropout import noise
from .matmul import multiply

NOTHING = np.empty(0, np.float32)


def _fold(x: Array, heads: int) -> Any:
    """Query heads that share a key head become rows of one matrix, so keys are not repeated."""
    b, h, rows, columns = x.shape
    return x.reshape(b, heads, h // heads * rows if heads else rows, columns)


def _product(a: Array, b: Array) -> Any:
    """`a @ b` for a of all query heads and b of the shared ones."""
    return multiply(_fold(a, b.shape[1]), b).reshape(*a.shape[:3], b.shape[3])


def _weights(q: Array, k: Array, mask: Array | None, offset: int, is_causal: bool, scale: float) -> tuple[Any, Any]:
    """Rows of softmax and their log-sum-exp.

    In float64: the exponential turns the absolute error of a score into a relative one, and scores
    of a hundred have few digits behind the point in float32.
    """
    scores = _product(q.astype(np.float64), np.swapaxes(k, 2, 3).astype(np.float64)) * scale
    if mask is not None and mask.dtype == np.bool_:
        scores = np.where(mask, scores, -np.inf)
    elif mask is not None:
        scores += mask
    if is_causal:
        rows, columns = scores.shape[2:]
        seen = np.tri(rows, columns, offset, dtype=np.bool_)
        scores = np.where(seen, scores, -np.inf)
    top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(top == -np.inf, 0, top)  # a row that sees nothing: all exponentials are zero
    e = np.exp(scores - top)
    total = np.sum(e, axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)).astype(q.dtype), (np.log(total) + top)[..., 0]


@kernel("_attention")
def attention(q: Array, k: Array, v: Array, mask: Array | None, *given: Any) -> tuple[Array, ...]:
    how = How(*given)
    weights, lse = _weights(q, k, mask, how.offset, how.is_causal, how.scale)
    if how.dropout_p:
        weights *= noise(how.seed, how.counter, weights.shape, how.dropout_p, weights.dtype)
    return _product(weights, v), lse


@kernel("_attention_backward")
def attention_backward(
    g: Array, g_lse: Array, q: Array, k: Array, v: Array, mask: Array | None, out: Array, lse: Array, *given: Any
) -> tuple[Array, ...]:
    # `out` and `lse` are for kernels that never hold a whole row of weights; here it is at hand.
    how = How(*given)
    weights, _ = _weights(q, k, mask, how.offset, how.is_causal, how.scale)
    by_weights, dropped = _product(g, np.swapaxes(v, 2, 3)), weights
    if how.dropout_p:
        kept = noise(how.seed, how.counter, weights.shape, how.dropout_p, weights.dtype)
        by_weights, dropped = by_weights * kept, weights * kept
    mean = np.sum(by_weights * weights, axis=-1, keepdims=True) - g_lse[..., None]
    by_scores = weights * (by_weights - mean)
    heads, scale = k.shape[1], q.dtype.type(how.scale)
    return (
        _product(by_scores, k) * scale,
        multiply(np.swapaxes(_fold(by_scores, heads), 2, 3), _fold(q, heads)) * scale,
        multiply(np.swapaxes(_fold(dropped, heads), 2, 3), _fold(g, heads)),
        _reduced(by_scores, mask.shape) if how.by_mask and mask is not None else NOTHING,
    )


def _reduced(x: Array, shape: Ints) -> Any:
    """Summed over the dimensions along which a mask of `shape` was stretched."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 != x.shape[i])
    return x.sum(axis=axes, keepdims=True)
