"""The joined operators of decoding on NumPy, step by step. Half types arrive as float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .attention import attention


def _normed(x: Array, weight: Array | None, eps: float) -> Any:
    scale = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + x.dtype.type(eps))
    return x * scale if weight is None else x * scale * weight


@kernel("_norm_linear")
def norm_linear(x: Array, norm: Array, eps: float, weights: list[Array], gated: bool) -> Array:
    y = [_normed(x, norm, eps) @ w.T for w in weights]
    if not gated:
        return np.concatenate(y, -1)
    return y[0] / (1 + np.exp(-y[0])) * y[1]


@kernel("_linear_add")
def linear_add(x: Array, weight: Array, residual: Array) -> Array:
    return residual + x @ weight.T


@kernel("_rotate_and_attend", widen=False)
def rotate_and_attend(
    qkv: Array,
    q_norm: Array | None,
    k_norm: Array | None,
    eps: float,
    cos: Array,
    sin: Array,
    keys: Array,
    values: Array,
    position: Array,
    counts: Array,
    heads: int,
    scale: float,
) -> Array:
    batch, shared, _, width = keys.shape
    wide = np.float64 if qkv.dtype == np.float64 else np.float32
    parts = qkv.reshape(batch, heads + 2 * shared, width).astype(wide)
    at = int(np.asarray(position).reshape(-1)[0])
    c, s = (t[at if len(t) > 1 else 0].astype(wide) for t in (cos, sin))

    def rotated(x: Array, weight: Array | None) -> Any:
        if weight is not None:
            x = _normed(x, weight.astype(wide), eps)
        a, b = x[..., : len(c)], x[..., len(c) : 2 * len(c)]
        return np.concatenate([a * c - b * s, b * c + a * s, x[..., 2 * len(c) :]], -1)

    keys[:, :, at] = rotated(parts[:, heads : heads + shared], k_norm).astype(keys.dtype)
    values[:, :, at] = parts[:, heads + shared :].astype(values.dtype)
    q = rotated(parts[:, :heads], q_norm).astype(qkv.dtype)[:, :, None]
    q, k, v = (x.astype(wide) for x in (q, keys[:, :, : at + 1], values[:, :, : at + 1]))
    out, _ = attention(q, k, v, None, 0, 0, 0, 0.0, False, scale)
    return np.swapaxes(out, 1, 2).reshape(batch, 1, -1).astype(qkv.dtype)
