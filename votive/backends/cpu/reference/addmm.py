"""Products added to an input, by the product of `matmul.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from .matmul import multiply


def _factors(y: Any, *factors: Any) -> list[Any]:
    # As in torch, a fractional factor of integers is cut off.
    return [y.dtype.type(int(f)) for f in factors] if y.dtype.kind in "iu" else list(factors)


@kernel("_addmm")
def addmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    alpha, beta = _factors(a, alpha, beta)
    y = multiply(a, b)
    y = y if alpha == 1 else y * alpha
    # With beta 0 the input does not count at all, not even its NaNs.
    return y if beta == 0 else y + x * beta


@kernel("_addbmm")
def addbmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    alpha, beta = _factors(a, alpha, beta)
    total = np.zeros((a.shape[1], b.shape[2]), a.dtype)
    if beta != 0:
        total = total + x * beta
    for first, second in zip(a, b, strict=True):
        total = total + multiply(first, second) * alpha
    return total
