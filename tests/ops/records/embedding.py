"""Records for rows of a table by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

TABLE = S(5, 3)


def at(*shape: int) -> S:
    return S(*shape, dtype="int64", low=0, high=5)


def limited(weight: Any, at: Any, max_norm: float, norm_type: float) -> Any:
    out = np.array(weight)
    for i in np.unique(at):
        size = (np.abs(weight[i]) ** norm_type).sum() ** (1 / norm_type)
        if size > max_norm:
            out[i] = weight[i] * (max_norm / (size + 1e-7))
    return out


RECORDS = [
    op(
        "nn.functional.embedding",
        samples=[
            (at(4), TABLE),
            (at(2, 3), TABLE),
            (S(dtype="int32", low=0, high=5), TABLE),
            (at(0), TABLE),
            (at(2, 0), TABLE),
            (at(4), S(5, 0)),
        ],
        reference=lambda at, weight, **_: weight[at],
        dtypes="fcib",
        errors=[
            ((S(values=[5], dtype="int64"), TABLE), IndexError),
            ((S(values=[-1], dtype="int64"), TABLE), IndexError),
            ((S(2, dtype="uint8"), TABLE), RuntimeError),
            ((S(2, dtype="float32"), TABLE), RuntimeError),
            ((at(2), S(5)), RuntimeError),
            ((at(2), S(5, 2, 2)), RuntimeError),
            ((at(2), TABLE, 5), AssertionError),
            ((at(2), TABLE, -6), AssertionError),
        ],
    ),
    op(
        # What is left out of the gradient is no derivative: torch is the reference.
        "embedding",
        samples=[
            (TABLE, S(values=[1, 1, 2, 4], dtype="int64")),
            (TABLE, S(values=[[1, 1], [2, 4]], dtype="int64"), -2),
        ],
        reference=lambda weight, at, *_: weight[at],
    ),
    op(
        "nn.functional.embedding",
        samples=[(at(4), TABLE, {"max_norm": 1.0}), (at(4), TABLE, {"max_norm": 1.0, "norm_type": 1.0})],
        reference=lambda at, weight, max_norm, norm_type=2.0: limited(weight, at, max_norm, norm_type)[at],
        # The factor of a row is rounded to its type before it multiplies, as in torch.
        tol={"bfloat16": (3e-2, 1e-2), "float16": (4e-3, 2e-3)},
        grad=False,
    ),
    op(
        "embedding_renorm_",
        samples=[(TABLE, at(3), 1.0, 2.0), (TABLE, at(2, 2), 0.5, 1.0), (TABLE, at(0), 0.5, 1.0)],
        reference=limited,
        tol={"bfloat16": (3e-2, 1e-2), "float16": (4e-3, 2e-3)},
        grad=False,
        errors=[((TABLE, S(2, dtype="float32"), 1.0, 2.0), RuntimeError)],
    ),
]
