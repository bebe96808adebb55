"""Products of 8-bit numbers by NumPy's BLAS on wider ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.assign import assign
from .matmul import multiply


@kernel("_scaled_product", into=True, widen=False)
def scaled_product(
    a: Any, b: Any, scale_a: Any, scale_b: Any, bias: Any, scale_result: Any, dtype: Any, fast: bool, out: Any
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
def whole_product(a: Any, b: Any) -> Any:
    # Sums of up to 2^9 products of 2^15 are exact in 24 bits; in 53 bits all are.
    wide = np.float32 if a.shape[1] <= 512 else np.float64
    return multiply(a.astype(wide), b.astype(wide)).astype(np.int64).astype(np.int32)
