"""Records for losses of one value against another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

F = "nn.functional."
REDUCTIONS = ("none", "mean", "sum")
PAIRS: list[Any] = [
    *[(S(3, 4), S(3, 4), {"reduction": r}) for r in REDUCTIONS],
    (S(), S()),
    (S(2, 3, 2), S(2, 3, 2)),
    (S(0, 3), S(0, 3), {"reduction": "sum"}),
]
# Extremes, where squares overflow the half types and differences cancel.
FAR: list[Any] = [(S(4, values=[1e4, -1e4, 100.0, 0.0], dtype="float64"), S(4, dtype="float64"), {"reduction": "none"})]
WEIGHTED: list[Any] = [(S(3, 4), S(3, 4), {"reduction": r, "weight": S(3, 4, low=0.5, high=2.0)}) for r in REDUCTIONS]
ERRORS: list[Any] = [
    ((S(3), S(3), {"reduction": "max"}), ValueError),
    ((S(3, dtype="int64"), S(3, dtype="int64")), RuntimeError),
]
NO_WEIGHT: list[Any] = [((S(3, 4), S(3, 4), {"weight": S(4)}), ValueError)]


def reduce(loss: Any, reduction: str, total: Any = None) -> Any:
    if reduction == "mean":
        return loss.sum() / (loss.size if total is None else total)
    return loss.sum() if reduction == "sum" else loss


def distance(formula: Any, by_weight: bool = True) -> Any:
    def run(x: Any, t: Any, reduction: str = "mean", weight: Any = None, **options: Any) -> Any:
        loss = formula(x - t, **options) * (1 if weight is None else weight)
        return reduce(loss, reduction, None if weight is None or not by_weight else weight.sum())

    return run


def smooth_l1(u: Any, beta: float = 1.0) -> Any:
    inside = np.abs(u) < beta
    return np.where(inside, u * u / (2 * (beta or 1)), np.abs(u) - beta / 2)


def huber(u: Any, delta: float = 1.0) -> Any:
    a = np.abs(u)
    return np.where(a <= delta, u * u / 2, delta * (a - delta / 2))


def kl_div(x: Any, t: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    p = np.exp(t) if log_target else t
    log_p = t if log_target else np.log(np.where(p == 0, 1, p))
    loss = p * (log_p - x)
    return loss.sum() / len(x) if reduction == "batchmean" else reduce(loss, reduction)


def poisson(
    x: Any, t: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        safe = np.where(t > 1, t, 2)
        stirling = safe * np.log(safe) - safe + np.log(2 * math.pi * safe) / 2
        loss = loss + np.where(t > 1, stirling, 0)
    return reduce(loss, reduction)


def gaussian(x: Any, t: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    var = np.asarray(var)
    var = np.maximum(var[..., None] if var.shape == x.shape[:-1] and var.ndim else var, eps)
    loss = (np.log(var) + (x - t) ** 2 / var) / 2 + (math.log(2 * math.pi) / 2 if full else 0)
    return reduce(loss, reduction)


TWO: dict[str, Any] = {"low": 0.1, "high": 2.0}
RATES: list[Any] = [
    *[(S(3, 4), S(3, 4, **TWO), {"reduction": r}) for r in REDUCTIONS],
    (S(3, 4), S(3, 4, low=1.2, high=4.0), True, True),
    (S(3, 4, **TWO), S(3, 4, low=1.2, high=4.0), False, True, {"eps": 0.1}),
    (S(3, 4, **TWO), S(3, 4, low=0.1, high=0.9), False, True, {"reduction": "none"}),
    (S(2, 3), S(3, **TWO)),
]
VARIANCES: list[Any] = [
    *[(S(3, 4), S(3, 4), S(3, 4, **TWO), {"reduction": r}) for r in REDUCTIONS],
    (S(3, 4), S(3, 4), S(3, **TWO), True),
    (S(3, 4), S(3, 4), S(3, 1, **TWO)),
    (S(3, 4), S(3, 4), S(1, 4, **TWO)),
    (S(3, 4), S(3, 4), 0.5, {"full": True}),
    (S(3, 4), S(4), S(3, 4, **TWO)),
]

RECORDS = [
    op(F + "mse_loss", samples=PAIRS + FAR + WEIGHTED, reference=distance(np.square), errors=ERRORS + NO_WEIGHT),
    op(
        F + "l1_loss",
        samples=PAIRS + FAR + WEIGHTED,
        reference=distance(np.abs),
        dtypes="fc",
        errors=ERRORS + NO_WEIGHT,
    ),
    op(
        F + "smooth_l1_loss",
        samples=[*PAIRS, *FAR, *[(S(3, 4), S(3, 4), {"beta": b}) for b in (0.0, 0.3, 2.0)]],
        reference=distance(smooth_l1),
        errors=[*ERRORS, ((S(3), S(3), {"beta": -1.0}), RuntimeError)],
    ),
    op(
        F + "huber_loss",
        samples=[*PAIRS, *FAR, *WEIGHTED, *[(S(3, 4), S(3, 4), {"delta": d}) for d in (0.3, 2.0)]],
        reference=distance(huber, by_weight=False),
        errors=[*ERRORS, *NO_WEIGHT, ((S(3), S(3), {"delta": 0.0}), RuntimeError)],
    ),
    op(
        F + "kl_div",
        reference=kl_div,
        errors=ERRORS[:1]
        + [
            ((S(3, dtype="int64"), S(3), {"reduction": "sum"}), RuntimeError),
            ((S(3, dtype="complex128"), S(3), {"reduction": "sum"}), RuntimeError),
        ],
        samples=[(S(3, 4, high=0.0), S(3, 4, **TWO), {"reduction": r}) for r in ("none", "sum", "batchmean")]
        + [
            (S(3, 4, high=0.0), S(3, 4, high=0.0), {"reduction": "sum", "log_target": True}),
            (S(2, values=[0.0, -1e4], grad=False), S(2, values=[0.0, 1.0], grad=False), {"reduction": "none"}),
        ],
    ),
    op(F + "poisson_nll_loss", samples=RATES, reference=poisson, errors=ERRORS[:1]),
    op(
        F + "gaussian_nll_loss",
        samples=VARIANCES,
        reference=gaussian,
        errors=[
            ((S(3), S(3), S(3, **TWO), {"reduction": "max"}), ValueError),
            ((S(3, 4), S(3, 4), S(4, **TWO)), ValueError),
            ((S(3), S(3), -1.0), ValueError),
            ((S(3), S(3), S(3, low=-2.0, high=-1.0)), ValueError),
            ((S(3), S(3), 1), TypeError),
        ],
    ),
]
