"""Weights in blocks on NumPy: decoded, then used as any numbers."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ....core.blocks import block_dtype
from ...base import kernel
from ...common.blocks import decode_into
from ..arrays import Array
from .index import bounded


def decoded(data: Array, format: block_dtype, dtype: dt.dtype) -> Array:
    """The numbers of rows of bytes."""
    out = np.empty((*data.shape[:-1], format.row_elements(data.shape[-1])), dtype.np)
    if out.size:
        decode_into(out.reshape(-1), np.ascontiguousarray(data).reshape(-1), format)
    return out


def _wide(x: Array) -> dt.dtype:
    return dt.float64 if x.dtype == np.float64 else dt.float32


@kernel("_block_decode", widen=False)
def block_decode(data: Array, format: block_dtype, dtype: dt.dtype) -> Array:
    return decoded(data, format, dtype)


@kernel("_block_linear", widen=False)
def block_linear(x: Array, data: Array, bias: Array | None, format: block_dtype, exact: bool) -> Array:
    weight = decoded(data, format, _wide(x))
    y = x.astype(weight.dtype) @ weight.T
    return (y if bias is None else y + bias.astype(weight.dtype)).astype(x.dtype)


@kernel("_block_matmul", widen=False)
def block_matmul(x: Array, data: Array, format: block_dtype) -> Array:
    weight = decoded(data, format, _wide(x))
    return (x.astype(weight.dtype) @ weight).astype(x.dtype)


@kernel("_block_embedding", widen=False)
def block_embedding(indices: Array, data: Array, format: block_dtype, dtype: dt.dtype) -> Array:
    at = bounded("embedding", indices, data.shape[0], 0, IndexError)
    return decoded(np.take(data, at, axis=0), format, dtype)
