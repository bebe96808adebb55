"""Products of 8-bit numbers by NumPy's BLAS on wider ones."""

from __future__ import annotations

import numpy as np

from ....core.dtype import dtype
from ...base import kernel
from ...common.assign import assign
from ..arrays import Array
from .matmul import multiply


@kernel("_scaled_product", into=True, widen=False)
def scaled_product(
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None,
    scale_result: Array | None,
    dtype: dtype,
    fast: bool,
    out: Array,
) -> None:
    y = multiply(a.astype(np.float32), b.astype(np.float32))
    single = scale_a.size == scale_b.size == 1
    y = y * (scale_a.reshape(()) if single else scale_a)
    y = y * (scale_b.reshape(()) if single else scale_b)
    if bias is not None:
        y = y + bias.reshape(-1).astype(np.float32)
    if scale_result is not None:
        y = y * scale_result.reshape(())
    assign(out, y)


@kernel("_whole_product")
def whole_product(a: Array, b: Array) -> Array:
    # Sums of up to 2^9 products of 2^15 are exact in 24 bits; in 53 bits all are.
    wide = np.float32 if a.shape[1] <= 512 else np.float64
    return multiply(a.astype(wide), b.astype(wide)).astype(np.int64).astype(np.int32)
