"""Products added to an input, by the product of `matmul.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array
from .matmul import multiply


def _factors(y: Array, *factors: Any) -> list[Any]:
    # As in torch, a fractional factor of integers is cut off.
    return [y.dtype.type(int(f)) for f in factors] if y.dtype.kind in "iu" else list(factors)


def _combine(x: Array, y: Array, beta: float, alpha: float) -> Any:
    alpha, beta = _factors(y, alpha, beta)
    y = y if alpha == 1 else y * alpha
    # With beta 0 the input does not count at all, not even its NaNs.
    return y if beta == 0 else y + x * beta


@kernel("_addmm")
def addmm(x: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    return _combine(x, multiply(a, b), beta, alpha)


@kernel("_addbmm")
def addbmm(x: Array, a: Array, b: Array, beta: float, alpha: float) -> Array:
    total = np.zeros((a.shape[1], b.shape[2]), a.dtype)
    for first, second in zip(a, b, strict=True):
        total += multiply(first, second)
    return _combine(x, total, beta, alpha)
