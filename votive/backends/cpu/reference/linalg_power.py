"""The exponential of matrices by scaling, a rational function, and squaring. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.matrix_exp import LIMIT, WEIGHTS
from ..arrays import Array


def _rational(a: Array) -> Any:
    """p(A) / p(-A), p the numerator of the approximant; even and odd powers are summed apart.

    Higham (2005), eq. 2.9: high powers are products of a sixth power, so there are six products in all.
    """
    one = np.eye(a.shape[-1], dtype=a.dtype)
    second = a @ a
    fourth = second @ second
    powers = [second, fourth, second @ fourth]

    def summed(first: int) -> Any:
        return sum(w * p for w, p in zip(WEIGHTS[first : first + 5 : 2], powers, strict=True))

    even, odd = (powers[2] @ summed(8 + k) + summed(2 + k) + WEIGHTS[k] * one for k in (0, 1))
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
        on = halvings > done
        if on.all():
            result = result @ result
        else:
            result[on] = result[on] @ result[on]
    return result
