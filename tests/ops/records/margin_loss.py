"""Records for losses that ask for a margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .loss import REDUCTIONS, F, reduce

BAD: dict[str, Any] = {"reduction": "max"}
SIGNS = [1, -1, -1, 1]


def signs(*shape: int) -> S:
    values = np.resize(SIGNS, shape).tolist()
    return S(*shape, values=values, dtype="int64")


def hinge(x: Any, t: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    return reduce(np.where(t == 1, x, np.maximum(0, margin - x)), reduction)


def ranking(a: Any, b: Any, t: Any, margin: float = 0, reduction: str = "mean") -> Any:
    return reduce(np.maximum(0, margin - t * (a - b)), reduction)


def triplet(
    a: Any,
    p_: Any,
    n_: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    def far(x: Any, y: Any) -> Any:
        d = np.abs(x - y + eps)
        return d.max(-1) if np.isinf(p) else (d**p).sum(-1) ** (1 / p)

    other = np.minimum(far(a, n_), far(p_, n_)) if swap else far(a, n_)
    return reduce(np.maximum(0, margin + far(a, p_) - other), reduction)


def cosine(a: Any, b: Any, t: Any, margin: float = 0, reduction: str = "mean") -> Any:
    cos = (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
    return reduce(np.where(t == 1, 1 - cos, np.maximum(0, cos - margin)), reduction)


def multi_margin(x: Any, t: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> Any:
    rows, y = np.atleast_2d(x), np.atleast_1d(t)
    loss = np.zeros(len(rows))
    for n, row in enumerate(rows):
        others = np.delete(row, y[n])
        w = 1 if weight is None else weight[y[n]]
        loss[n] = w * (np.maximum(0, margin - row[y[n]] + others) ** p).sum() / row.size
    return reduce(loss.reshape(t.shape), reduction)


def multilabel_margin(x: Any, t: Any, reduction: str = "mean") -> Any:
    rows, labels = np.atleast_2d(x), np.atleast_2d(t)
    loss = np.zeros(len(rows))
    for n, row in enumerate(rows):
        ends = np.flatnonzero(labels[n] < 0)
        own = labels[n][: ends[0]] if len(ends) else labels[n]
        others = [i for i in range(row.size) if i not in own]
        loss[n] = sum(max(0, 1 - row[y] + row[i]) for y in own for i in others) / row.size
    return reduce(loss if x.ndim == 2 else loss[0], reduction)


TRIPLETS: list[Any] = [
    *[(S(3, 4), S(3, 4), S(3, 4), {"reduction": r}) for r in REDUCTIONS],
    (S(4), S(4), S(4), {"margin": 2.0}),
    (S(2, 3, 4), S(2, 3, 4), S(2, 3, 4), {"swap": True}),
]
TRIPLET_ERRORS: list[Any] = [
    ((S(3, 4), S(3, 4), S(4)), RuntimeError),
    ((S(3), S(3), S(3), {"margin": 0.0}), ValueError),
    ((S(3), S(3), S(3), BAD), ValueError),
]
ONE: dict[str, Any] = {"dtype": "int64", "low": 0, "high": 4}
# Two distances of up to 8 are rounded to bfloat16, by 1/64 each, before they are subtracted.
TWO_ROUNDED = {"bfloat16": (1.6e-2, 4e-2)}

RECORDS = [
    op(
        F + "hinge_embedding_loss",
        reference=hinge,
        kinks=(1.0, 0.5),
        samples=[
            *[(S(3, 4), signs(3, 4), {"reduction": r}) for r in REDUCTIONS],
            (S(2, 4), signs(4), 0.5),
            (S(), signs()),
        ],
        errors=[((S(3), signs(3), BAD), ValueError)],
    ),
    op(
        F + "margin_ranking_loss",
        reference=ranking,
        samples=[*[(S(4), S(4), signs(4), {"reduction": r}) for r in REDUCTIONS], (S(2, 4), S(1, 4), signs(2, 4), 0.7)],
        errors=[((S(3), S(3), signs(1, 3)), RuntimeError), ((S(3), S(3), signs(3), BAD), ValueError)],
    ),
    op(
        F + "triplet_margin_loss",
        reference=triplet,
        errors=TRIPLET_ERRORS,
        tol=TWO_ROUNDED,
        samples=[
            *TRIPLETS,
            (S(3, 4), S(3, 4), S(3, 4), 1.0, 1.0),
            (S(3, 4), S(3, 4), S(3, 4), 1.0, 3.0, 1e-2),
            (S(3, 4), S(3, 4), S(3, 4), 2.0, np.inf),
        ],
    ),
    op(
        F + "triplet_margin_with_distance_loss",
        samples=TRIPLETS,
        reference=triplet,
        errors=TRIPLET_ERRORS,
        tol=TWO_ROUNDED,
    ),
    op(
        F + "cosine_embedding_loss",
        reference=cosine,
        samples=[
            *[(S(4, 3), S(4, 3), signs(4), {"reduction": r}) for r in REDUCTIONS],
            (S(3), S(3), signs()),
            (S(4, 3), S(4, 3), signs(4), 0.3),
        ],
        errors=[
            ((S(4, 3), S(4, 3), signs(4, 1)), RuntimeError),
            ((S(3), S(3), signs(1)), RuntimeError),
            ((S(4, 3), S(4, 3), signs(4), BAD), ValueError),
        ],
    ),
    # torch has neither half types nor second derivatives here; "i" would be refused as well.
    op(
        F + "multi_margin_loss",
        reference=multi_margin,
        dtypes="f",
        samples=[
            *[(S(3, 4, dtype="float64"), S(3, **ONE), {"reduction": r}) for r in REDUCTIONS],
            (S(3, 4, dtype="float64"), S(3, **ONE), 2, 0.5),
            (S(4, dtype="float64"), S(**ONE)),
            (S(4, dtype="float64"), S(1, **ONE), {"reduction": "none"}),
        ],
        errors=[
            ((S(3, 4), S(3, values=[0, 4, 0], dtype="int64")), RuntimeError),
            ((S(3, 4), S(3, **ONE), 3), ValueError),
            ((S(3, 4), S(2, **ONE)), RuntimeError),
            ((S(3, 4), S(3, **ONE), {"weight": S(3)}), RuntimeError),
            ((S(3, 4), S(3, **ONE), {"weight": S(1, 4)}), ValueError),
            ((S(3, 0), S(3, **ONE)), RuntimeError),
            ((S(1, 3, 4), S(1, **ONE)), RuntimeError),
            ((S(3, 4, dtype="float16"), S(3, **ONE)), NotImplementedError),
            ((S(3, 4), S(3, dtype="int32", low=0, high=4)), RuntimeError),
        ],
    ),
    op(
        F + "multilabel_margin_loss",
        reference=multilabel_margin,
        samples=[
            *[
                (
                    S(3, 4, dtype="float64"),
                    S(3, 4, values=[[1, 3, -1, 0], [-1, 0, 1, 2], [0, 1, 2, 3]], dtype="int64"),
                    {"reduction": r},
                )
                for r in REDUCTIONS
            ],
            (S(3, dtype="float64"), S(3, values=[2, 2, -1], dtype="int64")),
        ],
        errors=[
            ((S(2, 3), S(2, 3, values=[[0, 3, -1]] * 2, dtype="int64")), RuntimeError),
            ((S(2, 3), S(2, 3, values=[[0, -2, -1]] * 2, dtype="int64")), RuntimeError),
            ((S(2, 3), S(2, 2, **ONE)), RuntimeError),
            ((S(2, 3), S(2, 3, dtype="int32", low=0, high=3)), RuntimeError),
        ],
    ),
]
