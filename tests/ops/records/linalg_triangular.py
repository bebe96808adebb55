"""Records for triangular systems."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import regular, through

HALF = [((S(2, 2, dtype="float16"), S(2, 2, dtype="float16"), {"upper": True}), NotImplementedError)]


def solved(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    inverse = np.linalg.inv(a)
    return inverse @ b if left else b @ inverse


def backwards(b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    matrix = np.swapaxes(a, -2, -1) if transpose else a
    x = solved(matrix, b, upper=upper != transpose, unitriangular=unitriangular)
    return x, np.broadcast_to(a, (*x.shape[:-2], *a.shape[-2:]))


def far_from_singular(package: Any, b: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    return (b, *regular(package, a), *rest)


RECORDS = [
    through(
        "linalg.solve_triangular",
        samples=[
            (S(3, 3), S(3, 2), {"upper": True}),
            (S(3, 3), S(3, 2), {"upper": False}),
            (S(3, 3), S(2, 3), {"upper": False, "left": False}),
            (S(3, 3), S(2, 3), {"upper": True, "left": False, "unitriangular": True}),
            (S(2, 1, 3, 3), S(4, 3, 2), {"upper": True}),
            (S(3, 3), S(4, 3, 2), {"upper": False, "unitriangular": True}),
            (S(4, 3, 3), S(3, 2), {"upper": True}),
            (S(20, 20), S(20, 2), {"upper": True}),  # more rows than one panel
            (S(20, 20), S(2, 20), {"upper": False, "left": False}),
            (S(0, 0), S(0, 3), {"upper": True}),
            (S(3, 3), S(3, 0), {"upper": True}),
            (S(0, 3, 3), S(0, 3, 2), {"upper": True}),
        ],
        prepare=regular,
        reference=solved,
        dtypes="wc",
        domain=(-0.5, 0.5),
    ),
    op(
        "linalg.solve_triangular",
        samples=[(S(values=[[0.0, 1.0], [0.0, 2.0]]), S(2, 1), {"upper": True})],
        dtypes="w",
        grad=False,
        errors=[
            *HALF,
            ((S(2, 3), S(2, 3), {"upper": True}), RuntimeError),
            ((S(2, 2), S(3, 2), {"upper": True}), RuntimeError),
            ((S(2, 2), S(2), {"upper": True}), RuntimeError),
            ((S(2, 2), S(2, 2, dtype="float32"), {"upper": True}), RuntimeError),
            ((S(2, 2), S(2, 2)), TypeError),
        ],
    ),
    through(
        "triangular_solve",
        samples=[
            (S(3, 2), S(3, 3)),
            (S(3, 2), S(3, 3), False),
            (S(3, 2), S(3, 3), True, True),
            (S(3, 2), S(3, 3), False, True, True),
            (S(4, 3, 2), S(3, 3)),
            (S(3, 2), S(2, 3, 3)),
        ],
        prepare=far_from_singular,
        reference=backwards,
        dtypes="wc",
    ),
]
