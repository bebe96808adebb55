"""Records for values that follow a rule."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op


def combinations(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(pick(x.tolist(), r))
    return np.array(rows, x.dtype).reshape(len(rows), r)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **_: Any) -> Any:
    return np.logspace(start, end, steps, base=base)


RECORDS = [
    op(
        "arange",
        samples=[(5,), (2.5,), (1, 6, 2), (5, 0, -2), (0, 1, 0.25), (0,), (1, 4, {"dtype": vt.float16})],
        reference=lambda *bounds, **_: np.arange(*bounds),
        grad=False,
        errors=[
            ((1, 5, 0), RuntimeError),
            ((5, 1), RuntimeError),
            ((float("inf"),), RuntimeError),
            (("a",), TypeError),
            ((), TypeError),
        ],
    ),
    op(
        "linspace",
        samples=[(0, 1, 5), (-3, 10, 7), (2, 2, 1), (0, 1, 0), (0, 1, 3, {"dtype": vt.float64}), (S(values=1.0), 4, 4)],
        reference=lambda start, end, steps, **_: np.linspace(start, end, steps),
        dtypes="f",
        grad=False,
        errors=[
            ((0, 1, -1), RuntimeError),
            ((0, 1, 2.0), TypeError),
            ((S(2), 1, 3), RuntimeError),
            ((0, 1, 2, {"dtype": vt.bool}), NotImplementedError),
        ],
        # The result has the default dtype whatever the ends have.
        tol={"float64": (1e-6, 1e-6)},
    ),
    op(
        "logspace",
        samples=[(0, 1, 5), (0, 4, 5, 2.0), (0, 1, 0), (1, 2, 1), (0, 2, 3, {"dtype": vt.float64})],
        reference=logspace,
        grad=False,
        errors=[((0, 1, -1), RuntimeError)],
        # The result has the default dtype.
        tol={"float64": (1e-6, 1e-6)},
    ),
    op(
        "tril_indices",
        samples=[(3, 3), (4, 2, 1), (2, 4, -1), (0, 2), (5, 3, -2), (3, 5, 9)],
        reference=lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col)),
        grad=False,
        errors=[((-1, 2), RuntimeError), ((2, 2, {"dtype": vt.float32}), NotImplementedError)],
    ),
    op(
        "triu_indices",
        samples=[(3, 3), (4, 2, 1), (2, 4, -1), (0, 2), (5, 3, -2), (3, 5, 9)],
        reference=lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col)),
        grad=False,
        errors=[((2, -1), RuntimeError)],
    ),
    op(
        "meshgrid",
        samples=[(S(2), S(3), {"indexing": "ij"}), (S(2), S(3), S(), {"indexing": "xy"}), ([S(3)], {"indexing": "ij"})],
        reference=lambda *x, indexing: np.meshgrid(*(x[0] if isinstance(x[0], list) else x), indexing=indexing),
        dtypes="bifc",
        errors=[
            ((S(2, 2),), RuntimeError),
            ((S(2), {"indexing": "ji"}), RuntimeError),
            ((S(2), S(2, dtype="int64")), RuntimeError),
        ],
    ),
    op(
        "cartesian_prod",
        samples=[(S(2), S(3)), (S(2), S(2), S(2)), (S(3),)],
        reference=lambda *x: np.array(list(itertools.product(*x))) if len(x) > 1 else x[0],
        dtypes="bifc",
        errors=[((S(2, 2),), RuntimeError)],
    ),
    op(
        "combinations",
        samples=[(S(4),), (S(4), 3), (S(3), 2, True), (S(2), 3), (S(3), 1)],
        reference=combinations,
        dtypes="bifc",
        errors=[((S(2, 2),), RuntimeError), ((S(2), -1), RuntimeError)],
    ),
    op(
        "vander",
        samples=[(S(3),), (S(3), 2), (S(3), 4, True), (S(3), 0)],
        reference=np.vander,
        dtypes="ifc",
        errors=[((S(2, 2),), RuntimeError), ((S(2), -1), RuntimeError)],
        torch=False,  # torch's own backward fails; its values are compared in test_spelling
    ),
]
