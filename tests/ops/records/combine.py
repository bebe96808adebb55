"""Records for joining tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def cat(tensors: Any, dim: int = 0) -> Any:
    return np.concatenate([t for t in tensors if t.shape != (0,)] or tensors, dim)


def block_diag(*blocks: Any) -> Any:
    blocks = [np.atleast_2d(b) for b in blocks]
    out = np.zeros(np.sum([b.shape for b in blocks], 0), np.result_type(*blocks))
    row = col = 0
    for b in blocks:
        out[row : row + b.shape[0], col : col + b.shape[1]] = b
        row, col = row + b.shape[0], col + b.shape[1]
    return out


PARTS = [S(2, 3), S(1, 3), S(4, 3)]

RECORDS = [
    op(
        "cat",
        samples=[
            (PARTS,),
            (PARTS, 0),
            ([S(2, 3), S(2, 1)], -1),
            ([S(3)],),
            ([S(0), S(2, 3)], 1),
            ([S(0, 3), S(2, 3)], 0),
        ],
        reference=cat,
        dtypes="bifc",
        errors=[
            (([],), ValueError),
            (([S(2, 3), S(2, 4)],), RuntimeError),
            (([S(2, 3), S(3)],), RuntimeError),
            (([S(2), S()],), RuntimeError),
            (([S(2), S(2)], 1), IndexError),
            ((S(2),), TypeError),
        ],
    ),
    op(
        "stack",
        samples=[([S(2, 3), S(2, 3)],), ([S(2, 3), S(2, 3)], 1), ([S(), S(), S()],), ([S(2)], -1)],
        reference=lambda tensors, dim=0: np.stack(tensors, dim),
        dtypes="bifc",
        errors=[(([],), RuntimeError), (([S(2), S(3)],), RuntimeError), (([S(2), S(2)], 2), IndexError)],
    ),
    op(
        "hstack",
        samples=[([S(2, 3), S(2, 1)],), ([S(2), S(3)],), ([S(), S()],)],
        reference=np.hstack,
        dtypes="bifc",
        errors=[(([],), RuntimeError)],
    ),
    op(
        "vstack",
        samples=[(PARTS,), ([S(2), S(2)],), ([S(), S()],)],
        reference=np.vstack,
        dtypes="bifc",
        errors=[(([],), RuntimeError)],
    ),
    op(
        "dstack",
        samples=[([S(2, 3), S(2, 3)],), ([S(2), S(2)],), ([S(2, 3, 1), S(2, 3, 4)],)],
        reference=np.dstack,
        dtypes="bifc",
        errors=[(([],), RuntimeError)],
    ),
    op(
        "column_stack",
        samples=[([S(2, 3), S(2)],), ([S(2), S(2)],)],
        reference=np.column_stack,
        dtypes="bifc",
        errors=[(([],), RuntimeError)],
    ),
    op(
        "block_diag",
        samples=[(S(2, 3), S(1, 2)), (S(2), S(), S(2, 2)), (S(2, 0), S(1, 2))],
        reference=block_diag,
        dtypes="ifc",
        errors=[((S(2, 2, 2),), RuntimeError), (([S(2)],), TypeError)],
    ),
]
