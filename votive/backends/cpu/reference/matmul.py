"""Matrix products through NumPy's BLAS, with the copies and foldings that make it fast."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array


def _for_blas(x: Array) -> Any:
    """The array itself if BLAS can read it, else a contiguous copy.

    BLAS wants one of the last two dimensions dense and the other at least as far apart as its rows
    are long; NumPy multiplies anything else with plain loops.
    """
    if x.ndim < 2 or x.dtype.kind not in "fc":
        return x
    (rows, columns), (down, right), size = x.shape[-2:], x.strides[-2:], x.itemsize
    by_rows = right == size and down >= size * columns and down % size == 0
    by_columns = down == size and right >= size * rows and right % size == 0
    return x if by_rows or by_columns else np.ascontiguousarray(x)


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """`a @ b`; a batch of matrices times one matrix is one large product."""
    a, b = _for_blas(a), _for_blas(b)
    foldable = a.ndim > 2 and b.ndim <= 2 and a.size and a.flags.c_contiguous
    if not foldable or (out is not None and not out.flags.c_contiguous):
        return np.matmul(a, b, out=out)
    rows = a.reshape(-1, a.shape[-1])
    if out is None:
        return np.matmul(rows, b).reshape(*a.shape[:-1], *b.shape[1:])
    np.matmul(rows, b, out=out.reshape(len(rows), *b.shape[1:]))
    return out


@kernel("matmul", into=True)
def matmul(a: Array, b: Array, out: Array) -> None:
    if out.dtype == a.dtype:
        multiply(a, b, out)
    else:  # half types were widened: accumulate in float32, round once
        np.copyto(out, multiply(a, b), casting="unsafe")


@kernel("linear")
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    y = multiply(x, weight.T)
    return y if bias is None else np.add(y, bias, out=y if isinstance(y, np.ndarray) else None)
