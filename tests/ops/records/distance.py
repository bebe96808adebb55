"""Records for unit vectors, angles and distances of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

INF = math.inf


def norm(x: Any, p: float, axis: Any, keepdims: bool = False) -> Any:
    size = np.abs(x)
    if p == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdims).astype(np.float64)
    if p == INF:
        return np.max(size, axis=axis, keepdims=keepdims, initial=0)
    return np.sum(size**p, axis=axis, keepdims=keepdims) ** (1 / p)


def cosine(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    a, b = np.broadcast_arrays(x1, x2)
    sizes = (np.maximum(norm(x, 2, dim), eps) for x in (a, b))
    return np.sum(a * b, dim) / math.prod(sizes)  # type: ignore[arg-type]


def pdist(x: Any, p: float = 2.0) -> Any:
    first, second = np.triu_indices(len(x), 1)
    return norm(x[first] - x[second], p, 1)


RECORDS = [
    op(
        "nn.functional.normalize",
        samples=[
            (S(3, 4),),
            (S(3, 4), 1.5, 0),
            (S(2, 3, 4), 3, -1, 0.5),
            (S(2, 3), {"dim": (0, 1)}),
            (S(4), {"dim": 0, "eps": 9.0}),
            (S(2, 3), INF),
            (S(values=[[0.0, 0.0], [1e-3, 0.0]], grad=False), {"eps": 1e-4}),
            (S(0, 3),),
        ],
        reference=lambda x, p=2, dim=1, eps=1e-12: x / np.maximum(norm(x, p, dim, True), eps),
        dtypes="fc",
        kinks=(0.0,),
        errors=[((S(4),), IndexError), ((S(2, 3, dtype="int64"),), RuntimeError)],
    ),
    op(
        "cosine_similarity",
        samples=[
            (S(3, 4), S(3, 4)),
            (S(3, 4), S(4), {"dim": -1}),
            (S(2, 1, 3), S(4, 3), 0),
            (S(4), S(4), {"dim": 0, "eps": 0.5}),
            (S(0, 3), S(0, 3)),
            (S(2, 3), S(2, 3, dtype="float64")),
        ],
        reference=cosine,
        # Each quotient is rounded to the type before the products are added, as in torch.
        tol={"float16": (4e-3, 4e-3), "bfloat16": (3e-2, 2e-2)},
        errors=[
            ((S(4), S(4)), IndexError),
            ((S(2, 3), S(2, 4)), RuntimeError),
            ((S(2, 3, dtype="int64"), S(2, 3, dtype="int64")), RuntimeError),
            ((S(2, 3, dtype="complex64"), S(2, 3)), RuntimeError),
            ((S(2, 3), S(2, 3), (0, 1)), TypeError),
        ],
    ),
    op(
        "pairwise_distance",
        samples=[
            (S(3, 4), S(3, 4)),
            (S(3, 4), S(4), 1.0, 0.5, True),
            (S(4), S(4), 3.0),
            (S(2, 3), S(2, 3), INF),
            (S(2, 3), S(2, 3), 0.0),
            (S(0, 3), S(0, 3)),
        ],
        reference=lambda a, b, p=2.0, eps=1e-6, keepdim=False: norm((a - b) + eps, p, -1, keepdim),
        dtypes="fc",
        kinks=(0.0,),
        tol={"bfloat16": (3e-2, 2e-2), "float16": (4e-3, 4e-3)},  # the difference is rounded first
        errors=[((S(2, 3), S(2, 4)), RuntimeError)],
    ),
    op("pairwise_distance", [(S(2, 3), S(2, 3)), (S(3), S(2, 3), 1.0)], dtypes="i", grad=False),
    op(
        "pdist",
        samples=[
            *((S(4, 3), p) for p in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF)),
            (S(values=[[0.0, 1.0], [0.0, 1.0], [2.0, 1.0]], grad=False),),
        ],
        reference=pdist,
        errors=[
            ((S(3),), RuntimeError),
            ((S(2, 3, 4),), RuntimeError),
            ((S(3, 2), -1.0), RuntimeError),
            ((S(3, 2, dtype="int64"),), RuntimeError),
        ],
    ),
    op(
        # torch's backward crashes on some of these.
        "pdist",
        samples=[(S(1, 3),), (S(0, 3),), (S(3, 0),), (S(3, 0), INF)],
        reference=pdist,
        grad=False,
    ),
    op(
        # The smallest length disappears in float16, so there zero over zero is NaN, as in torch.
        "nn.functional.normalize",
        samples=[(S(values=[[0.0, 0.0], [3.0, 4.0]]),)],
        grad=False,
    ),
]
