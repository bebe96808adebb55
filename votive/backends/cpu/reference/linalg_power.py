"""The exponential of matrices by scaling, a rational function, and squaring. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.matrix_exp import DEGREE, LIMIT, WEIGHTS
from ..arrays import Array


def _rational(a: Array) -> Any:
    """p(A) / p(-A), p the numerator of the approximant; even and odd powers are summed apart."""
    power = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    even, odd = np.zeros_like(a), np.zeros_like(a)
    square = a @ a
    for j in range(0, DEGREE + 1, 2):
        even += WEIGHTS[j] * power
        odd += WEIGHTS[j + 1] * power
        if j + 2 <= DEGREE:
            power = power @ square
    odd = a @ odd
    return np.linalg.solve(even - odd, even + odd)


@kernel("_matrix_exp")
def matrix_exp(a: Array) -> Array:
    n = a.shape[-1]
    if n <= 1 or a.size == 0:
        return np.exp(a)
    # Squaring doubles relative errors again and again, so narrow types are widened meanwhile.
    a = a.astype(np.result_type(a.dtype, np.float64))
    norm = np.abs(a).sum(axis=-2).max(axis=-1)
    ratio = np.where(np.isfinite(norm) & (norm > LIMIT), norm / LIMIT, 1)
    halvings = np.ceil(np.log2(ratio)).astype(np.int64)
    result = _rational(a * 0.5 ** halvings[..., None, None])
    for done in range(halvings.max()):
        result = np.where((halvings > done)[..., None, None], result @ result, result)
    return result
