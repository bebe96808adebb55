"""Records for losses of yes-or-no targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .loss import REDUCTIONS, F, reduce

P: dict[str, Any] = {"low": 0.05, "high": 0.95}
# Integers, because torch refuses weights (and here targets) that require a gradient.
W: dict[str, Any] = {"low": 1, "high": 4, "dtype": "int64"}
ERRORS: list[Any] = [((S(3, **P), S(3, **P), {"reduction": "max"}), ValueError)]
SHAPES: list[Any] = [((S(3, **P), S(4, **P)), ValueError), ((S(3, **P), S(1, **P)), ValueError)]
FAR: dict[str, Any] = {"values": [1e4, -1e4, 100.0, -100.0, 0.0], "dtype": "float64"}


def pairs(x: dict[str, Any]) -> list[Any]:
    return [
        *[(S(3, 4, **x), S(3, 4, **P), {"reduction": r}) for r in REDUCTIONS],
        (S(3, 4, **x), S(3, 4, **P), {"weight": S(4, **W)}),
        (S(**x), S(**P)),
        (S(0, 3, **x), S(0, 3, **P), {"reduction": "sum"}),
    ]


def bce(x: Any, t: Any, weight: Any = None, reduction: str = "mean") -> Any:
    logs = np.maximum(np.log(x), -100), np.maximum(np.log(1 - x), -100)
    return reduce(-(t * logs[0] + (1 - t) * logs[1]) * (1 if weight is None else weight), reduction)


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def with_logits(x: Any, t: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = 1) -> Any:
    loss = pos_weight * t * softplus(-x) + (1 - t) * softplus(x)
    return reduce(loss * (1 if weight is None else weight), reduction)


def multilabel(x: Any, t: Any, weight: Any = None, reduction: str = "mean") -> Any:
    loss = t * softplus(-x) + (1 - t) * softplus(x)
    return reduce((loss * (1 if weight is None else weight)).mean(-1), reduction)


def soft_margin(x: Any, t: Any, reduction: str = "mean") -> Any:
    return reduce(softplus(-t * x), reduction)


RECORDS = [
    op(
        F + "binary_cross_entropy",
        samples=[
            *pairs(P),
            (
                S(values=[0.0, 1.0, 0.0, 1.0, 0.5], grad=False),
                S(values=[0.0, 0.0, 1.0, 1.0, 0.25], grad=False),
                {"reduction": "none"},
            ),
        ],
        reference=bce,
        errors=[
            *ERRORS,
            *SHAPES,
            ((S(3, low=1.5, high=2.0), S(3, **P)), RuntimeError),
            ((S(3, **P), S(3, low=-2.0, high=-1.0)), RuntimeError),
            ((S(1, values=[np.nan]), S(1, **P)), RuntimeError),
            ((S(3, **P), S(3, dtype="int64")), RuntimeError),
        ],
    ),
    op(
        F + "binary_cross_entropy_with_logits",
        samples=[
            *pairs({}),
            (S(3, 4), S(3, 4, **P), {"pos_weight": S(4, **W)}),
            (S(3, 4), S(3, 4, **P), S(3, 1, **W), {"pos_weight": S(4, **W), "reduction": "none"}),
            (S(**FAR), S(values=[0.0, 1.0, 1.0, 0.0, 1.0], dtype="float64"), {"reduction": "none"}),
        ],
        reference=with_logits,
        errors=[
            *ERRORS,
            *SHAPES,
            ((S(3), S(3, dtype="int64")), RuntimeError),
            ((S(3, dtype="int64"), S(3, **P)), NotImplementedError),
            ((S(3), S(3, **P), S(2, 3)), RuntimeError),
        ],
    ),
    op(
        F + "multilabel_soft_margin_loss",
        samples=[s for s in pairs({}) if s[0].shape],
        reference=multilabel,
        errors=[*ERRORS, ((S(), S(**P)), IndexError)],
    ),
    # torch overflows far out; votive does not.
    op(
        F + "soft_margin_loss",
        samples=[
            *[(S(3, 4), S(3, 4, values=[[1, -1, 1, 1]] * 3, dtype="int64"), {"reduction": r}) for r in REDUCTIONS],
            (S(2, 3), S(3, values=[1, -1, 1], dtype="int64")),
        ],
        reference=soft_margin,
        errors=[
            ((S(3), S(3), {"reduction": "max"}), ValueError),
            ((S(3), S(2, 3)), RuntimeError),
            ((S(3, dtype="int64"), S(3)), RuntimeError),
        ],
    ),
]
