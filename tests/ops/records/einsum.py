"""Records for contractions and chains of products."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

# The products inside a chain are rounded to half types too; cancellation would magnify that.
POSITIVE = (0.0, 2.0)


def einsum(*args: Any) -> Any:
    if not isinstance(args[0], str):
        return np.einsum(*args)
    return np.einsum(args[0].replace(" ", ""), *args[1:])


def chain(matrices: Any) -> Any:
    return reduce(np.matmul, matrices)


RECORDS = [
    op(
        "einsum",
        samples=[
            ("ij,jk->ik", S(2, 3), S(3, 4)),
            ("ij, jk", S(2, 3), S(3, 4)),
            ("bij,bjk->bki", S(5, 2, 3), S(5, 3, 4)),
            ("i,j->ji", S(2), S(3)),
            ("ij,ij->", S(2, 3), S(2, 3)),
            ("ij,j->ij", S(2, 3), S(3)),
            ("ij->ji", S(2, 3)),
            ("ij->", S(2, 3)),
            ("ii->i", S(3, 3)),
            ("ii", S(3, 3)),
            ("iji->j", S(3, 2, 3)),
            ("iij,jk->ik", S(3, 3, 2), S(2, 4)),
            ("...ij,...jk->...ik", S(5, 2, 3), S(3, 4)),
            ("...ij,...jk", S(5, 2, 3), S(6, 1, 3, 4)),
            ("i...,i...->...", S(2, 3), S(2, 3)),
            ("b...,b->...b", S(2, 3, 4), S(2)),
            ("zB,BA->zA", S(2, 3), S(3, 4)),
            ("Ab,bC", S(2, 3), S(3, 4)),
            ("ab,cd->", S(2, 3), S(4, 5)),
            ("ab,bc,cd,de->ae", S(2, 9), S(9, 3), S(3, 8), S(8, 2)),
            ("ij,ik,il->jkl", S(2, 3), S(2, 4), S(2, 5)),
            ("i,i,i->i", S(3), S(3), S(3)),
            ("i,,j->ij", S(2), S(), S(3)),
            ("->", S()),
            ("ij,jk->ik", S(2, 0), S(0, 4)),
            ("ij,jk->ik", S(0, 3), S(3, 4)),
            (S(2, 3), [0, 1], S(3, 4), [1, 2], [0, 2]),
            (S(2, 3), [0, 1], S(3, 4), [1, 2]),
            (S(5, 2, 3), [..., 0], [0, ...]),
        ],
        reference=einsum,
        dtypes="fc",
        errors=[
            (("ij,jk->ik", S(2, 3), S(5, 4)), RuntimeError),
            (("ii->i", S(2, 3)), RuntimeError),
            (("ij->ii", S(2, 3)), RuntimeError),
            (("ij->ik", S(2, 3)), RuntimeError),
            (("ij,jk->ik", S(2, 3)), RuntimeError),
            (("ij->ij", S(2, 3), S(3)), RuntimeError),
            (("ijk->ij", S(2, 3)), RuntimeError),
            (("i->i", S(2, 3)), RuntimeError),
            (("i.j->i", S(2, 3)), RuntimeError),
            (("i$->i", S(2, 3)), RuntimeError),
            (("......->", S(2)), RuntimeError),
            (("...i,...i->...", S(2, 3), S(4, 3)), RuntimeError),
            (("ij->ij->ij", S(2, 3)), RuntimeError),
            (("i->",), ValueError),
            ((S(2, 3), [0, 52]), ValueError),
            ((1, S(2)), TypeError),
        ],
    ),
    op(
        "tensordot",
        samples=[
            (S(2, 3, 4), S(3, 4, 5)),
            (S(2, 3), S(3, 4), 1),
            (S(2, 3), S(4, 5), 0),
            (S(2, 3, 4), S(5, 4, 2), ([0, 2], [2, 1])),
            (S(2, 3), S(3, 4), {"dims": ([-1], [0])}),
            (S(2, 0), S(0, 3), 1),
            (S(), S(2, 3), 0),
        ],
        reference=lambda a, b, dims=2: np.tensordot(a, b, dims),
        dtypes="fic",
        errors=[
            ((S(2, 3), S(3, 4), 2), RuntimeError),
            ((S(2, 3), S(3, 4), -1), RuntimeError),
            ((S(2, 3), S(3, 4), 3), RuntimeError),
            ((S(2, 3), S(3, 4), ([0, 1], [0])), RuntimeError),
            ((S(2, 3), S(3, 4), ([1, 1], [0, 0])), RuntimeError),
            ((S(2, 3), S(3, 4), ([1], [5])), IndexError),
            ((S(2, 3), S(3, 4, dtype="int64"), 1), RuntimeError),
        ],
    ),
    op(
        "linalg.multi_dot",
        samples=[
            ([S(2, 3), S(3, 4)],),
            ([S(2, 9), S(9, 3), S(3, 8), S(8, 2)],),
            ([S(3), S(3, 4), S(4)],),
            ([S(3), S(3)],),
            ([S(2, 3), S(3)],),
            ([S(2, 0), S(0, 3), S(3, 4)],),
        ],
        reference=chain,
        dtypes="fic",
        domain=POSITIVE,
        errors=[
            (([S(2)],), RuntimeError),
            (([S(2, 3), S(4, 4)],), RuntimeError),
            (([S(2, 3), S(3, 4, 1), S(4, 4)],), RuntimeError),
            (([S(2, 3), S(3, 4, dtype="int64")],), RuntimeError),
        ],
    ),
    op(
        "chain_matmul",
        samples=[(S(2, 3), S(3, 4)), (S(2, 9), S(9, 3), S(3, 8)), (S(2, 3),)],
        reference=lambda *matrices: chain(matrices),
        dtypes="fic",
        domain=POSITIVE,
        errors=[((S(2), S(2, 3)), RuntimeError), ((S(2, 3), S(2, 3)), RuntimeError)],
    ),
]
