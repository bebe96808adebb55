"""GPTQ: codes chosen column by column, each column's error made up for by those that follow. Arrays only.

Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (2022): with H the
matrix of sums of products of inputs, rounding w_j moves the remaining weights by -(w_j - q_j) / U_jj * U_j,j+1.. where
U is the upper Cholesky factor of the inverse of H (equations 2 and 3). The scales of a block are fixed, by rounding
what its columns have become, when its first column is reached.
"""

from __future__ import annotations

import numpy as np

from ..core.blocks import block_dtype
from .encoding import rounded
from .grid import Array, grid_of, put_codes, records_of


def factor(products: Array, damping: float) -> tuple[Array, Array]:
    """The upper Cholesky factor of the inverse of H, and the columns that no input ever reached."""
    h = products.astype(np.float64)
    diagonal = np.einsum("ii->i", h)
    dead = diagonal == 0
    diagonal[dead] = 1
    # Added until the matrix is positive definite: few inputs give one of low rank.
    step = damping * float(diagonal.mean())
    for _ in range(16):
        diagonal += step
        try:
            inverse = np.linalg.inv(h)
            upper = np.linalg.cholesky((inverse + inverse.T) / 2).T
            return upper, dead
        except np.linalg.LinAlgError:
            step *= 4
    raise ValueError("gptq: the inputs are not finite numbers, so there is no Hessian to go by.")


def gptq(weight: Array, format: block_dtype, products: Array, count: int, *, damping: float = 0.01) -> Array:
    """The bytes of a matrix whose codes keep its products with the inputs, not its numbers.

    `products` is the sum of x x^T over `count` inputs.
    """
    upper, dead = factor(products / max(count, 1), damping)
    importance = np.einsum("ii->i", products).astype(np.float32)
    w = weight.astype(np.float64)
    w[:, dead] = 0
    rows, columns = w.shape
    size = format.block_size
    out = np.empty((rows, format.row_bytes(columns)), np.uint8)
    for block, i in enumerate(range(0, columns, size)):
        at = slice(i, i + size)
        part = np.ascontiguousarray(w[:, at], np.float32)
        # Where all inputs of a block are zero any weighting serves.
        weighting = importance[at] if importance[at].any() else None
        records = records_of(rounded(part, format, weighting), format).copy()
        grid = grid_of(records, format)
        codes = np.empty((rows, size), np.int64)
        errors = np.empty((rows, size))
        for j in range(size):
            one = slice(j, j + 1)
            column = w[:, i + j : i + j + 1]
            codes[:, one] = grid.codes(column, one)
            errors[:, one] = (column - grid.values(codes[:, one], one)) / upper[i + j, i + j]
            w[:, i + j + 1 : i + size] -= errors[:, one] * upper[i + j, i + j + 1 : i + size]
        w[:, i + size :] -= errors @ upper[at, i + size :]
        put_codes(records, codes, format)
        out[:, block * format.block_bytes : (block + 1) * format.block_bytes] = records.view(np.uint8).reshape(rows, -1)
    return out
