"""Records for determinants."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

SINGULAR = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 5.0]]


def leibniz(a: Any) -> Any:
    """The sum over all permutations."""
    n = a.shape[-1]
    total = np.zeros(a.shape[:-2], a.dtype)
    for order in permutations(range(n)):
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        total = total + (-1) ** swaps * a[..., range(n), order].prod(axis=-1)
    return total


def signed_log(a: Any) -> tuple[Any, Any]:
    det = leibniz(a)
    return np.where(det == 0, 0, det / np.abs(det)), np.log(np.abs(det))


def log(a: Any) -> Any:
    return np.log(leibniz(a))


BAD = [((S(2, 3),), RuntimeError), ((S(3),), RuntimeError)]
INT = [((S(2, 2, dtype="int64"),), RuntimeError)]
SHAPES: list[Any] = [
    (S(1, 1),),
    (S(2, 2),),
    (S(4, 4),),
    (S(2, 3, 3),),
    (S(2, 1, 3, 3),),
    (S(0, 0),),
    (S(2, 0, 0),),
    (S(0, 3, 3),),
]
POSITIVE: list[Any] = [
    (S(values=[[2.0, 1.0], [-1.0, 3.0]]),),
    (S(values=[[[2.0, 1.0], [-1.0, 3.0]], [[0.0, -1.0], [4.0, 0.5]]]),),
    (S(0, 0),),
]

RECORDS = [
    op(
        "linalg.det",
        samples=SHAPES,
        reference=leibniz,
        dtypes="wc",
        errors=[*BAD, *INT, ((S(2, 2, dtype="float16"),), NotImplementedError)],
    ),
    op(
        # Singular, once and twice: torch gives a gradient of 0 where the rank is one short, unless
        # asked for a graph, so here only the central differences judge.
        "det",
        samples=[
            *SHAPES,
            (S(values=SINGULAR),),
            (S(values=np.diag([1.0, 0.0, 0.0])),),
            (S(values=np.zeros((4, 4))),),
            (S(values=[[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]]),),
        ],
        reference=leibniz,
        dtypes="wc",
        torch=False,
    ),
    *[
        op(
            name,
            samples=SHAPES,
            reference=signed_log,
            dtypes="wc",
            errors=[*BAD, *INT, ((S(2, 2, dtype="float16"),), RuntimeError)],
        )
        for name in ("linalg.slogdet", "slogdet")
    ],
    op(
        "linalg.slogdet",
        samples=[(S(values=[[1.0, 2.0], [2.0, 4.0]]),), (S(values=[[-1e30, 0.0], [0.0, 1e30]]),)],
        dtypes="w",
        grad=False,
    ),
    op("logdet", samples=POSITIVE, reference=log, dtypes="wc", errors=[*BAD, *INT]),
    op("logdet", samples=[(S(values=[[-1.0]]),), (S(values=[[0.0]]),)], reference=log, dtypes="w", grad=False),
]
