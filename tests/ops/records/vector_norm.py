"""Records for lengths of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

INF = math.inf
ORDERS = (2, 1, 0, 3, 2.5, 1.5, 0.5, INF, -INF, -1, -2)
ORIGIN = S(values=[[0.0, 0.0], [3.0, 0.0]], grad=False)


def norm(x: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    size = np.abs(x)
    axis = dim if dim is None or isinstance(dim, int) else tuple(dim)
    if p in (None, "fro"):
        p = 2
    if p == 0:
        return np.sum(size != 0, axis=axis, keepdims=keepdim).astype(np.float64)
    if math.isinf(p):
        return (np.max if p > 0 else np.min)(size, axis=axis, keepdims=keepdim)
    return np.sum(size**p, axis=axis, keepdims=keepdim) ** (1 / p)


def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    rest = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = norm(x, p, rest, True)
    return x * np.where(size > maxnorm, maxnorm / (size + 1e-7), 1)


RECORDS = [
    op(
        "linalg.vector_norm",
        samples=[
            *((S(3, 4), {"ord": p, "dim": 1}) for p in ORDERS),
            (S(3, 4),),
            (S(),),
            (S(2, 3, 4), {"dim": (0, -1), "keepdim": True}),
            (S(0, 3), 2, 0),
            *((ORIGIN, p, 1) for p in ORDERS if p >= 0),
        ],
        reference=lambda x, ord=2, dim=None, keepdim=False: norm(x, ord, dim, keepdim),
        dtypes="fc",
        kinks=(0.0,),
        errors=[
            ((S(3, dtype="int64"),), RuntimeError),
            ((S(0, 3), INF), RuntimeError),
            ((S(3), {"dtype": vt.float32}), RuntimeError),
            ((S(3), 2, 4), IndexError),
        ],
    ),
    op(
        "norm",
        samples=[
            (S(3, 4),),
            (S(3, 4), 2, 1),
            (S(3, 4), "fro", (0, 1), True),
            (S(3, 4), 1),
            (S(3, 4), INF, 0),
            (S(3, 4), None),
            (S(),),
            (S(3, 4), 3, -1, True),
        ],
        reference=norm,
        dtypes="fc",
        kinks=(0.0,),
        errors=[
            ((S(3, dtype="int64"),), RuntimeError),
            ((S(3, 3), "none"), RuntimeError),
            ((S(2, 2, 2), "fro", (0, 1, 2)), RuntimeError),
            ((S(2, 2, 2), "nuc"), RuntimeError),
        ],
    ),
    op(
        "dist",
        samples=[(S(3, 4), S(3, 4)), (S(3, 4), S(4), 1), (S(3), S(), INF), (S(3), S(3), 3)],
        reference=lambda x, y, p=2: norm(x - y, p),
        dtypes="fc",
        errors=[((S(2), S(3)), RuntimeError)],
    ),
    op(
        "renorm",
        samples=[(S(3, 4), 2, 0, 1.0), (S(3, 4), 1, -1, 2.5), (S(2, 3, 4), 3, 1, 10.0), (S(2, 2), INF, 0, 1.0)],
        reference=renorm,
        dtypes="fc",
        errors=[
            ((S(3), 2, 0, 1.0), RuntimeError),
            ((S(3, 3), 0, 0, 1.0), RuntimeError),
            ((S(3, 3), 2, 0, -1.0), RuntimeError),
            ((S(3, 3), 2, 5, 1.0), IndexError),
        ],
    ),
]
