"""Records for diagonals and triangles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def fill_diagonal(x: Any, value: Any, wrap: bool = False) -> Any:
    out = x.copy()
    np.fill_diagonal(out, value, wrap)
    return out


RECORDS = [
    op(
        "diagonal",
        samples=[(S(3, 4),), (S(3, 4), 1), (S(3, 4), -2), (S(2, 3, 4), 0, 1, 2), (S(3, 4), 9), (S(2, 3, 4), 1, 2, 0)],
        reference=np.diagonal,
        dtypes="bifc",
        errors=[((S(3),), IndexError), ((S(3, 3), 0, 0, 0), RuntimeError)],
    ),
    op(
        "diag_embed",
        samples=[(S(3),), (S(2, 3),), (S(2, 3), 1), (S(2, 3), -1, 0, 2), (S(2, 3), 0, 2, 1)],
        reference=diag_embed,
        dtypes="bifc",
        errors=[((S(3), 0, 0, 0), RuntimeError), ((S(3), 0, 0, 2), IndexError)],
    ),
    op(
        "diag",
        samples=[(S(3),), (S(3), 1), (S(3, 4),), (S(3, 4), -1)],
        reference=np.diag,
        dtypes="bifc",
        errors=[((S(),), RuntimeError), ((S(2, 2, 2),), RuntimeError)],
    ),
    op("diagflat", samples=[(S(3),), (S(2, 2), 1), (S(),)], reference=np.diagflat, dtypes="bifc"),
    op(
        "trace",
        samples=[(S(3, 3),), (S(2, 4),), (S(0, 3),)],
        reference=np.trace,
        dtypes="ifc",
        errors=[((S(3),), RuntimeError)],
    ),
    op(
        "tril",
        samples=[(S(3, 4),), (S(3, 4), 1), (S(2, 3, 3), -1), (S(0, 3),)],
        reference=np.tril,
        dtypes="bifc",
        errors=[((S(3),), RuntimeError)],
    ),
    op(
        "triu",
        samples=[(S(3, 4),), (S(3, 4), 1), (S(2, 3, 3), -1), (S(0, 3),)],
        reference=np.triu,
        dtypes="bifc",
        errors=[((S(3),), RuntimeError)],
    ),
    op(
        "Tensor.fill_diagonal_",
        samples=[(S(3, 3), 1), (S(3, 4), 1), (S(7, 3), 1, True), (S(2, 2, 2), 1)],
        reference=fill_diagonal,
        dtypes="bifc",
        grad=False,  # writes its argument; the gradient is tested in test_views
        errors=[((S(3), 1), RuntimeError), ((S(2, 2, 3), 1), RuntimeError)],
    ),
]
