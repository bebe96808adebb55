"""Records for cross entropy of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .loss import REDUCTIONS, F

IGNORED: dict[str, Any] = {"dtype": "int64", "low": -1, "high": 4}


def classes(*shape: int) -> S:
    return S(*shape, dtype="int64", low=0, high=4)


HARD: list[Any] = [
    *[(S(3, 4), classes(3), {"reduction": r}) for r in REDUCTIONS],
    (S(4), classes()),
    (S(2, 4, 3), classes(2, 3)),
    *[(S(2, 4, 3, 2), classes(2, 3, 2), {"reduction": r}) for r in REDUCTIONS],
    (S(2, 4, 1, 2, 2), classes(2, 1, 2, 2)),
    (S(0, 4), classes(0), {"reduction": "sum"}),
    *[(S(6, 4), S(6, **IGNORED), {"ignore_index": -1, "reduction": r}) for r in REDUCTIONS],
    (S(2, 4, 3), S(2, 3, **IGNORED), {"ignore_index": -1}),
    # Everything ignored: no mean, no gradient.
    (S(2, 4, grad=False), S(2, values=[-100, -100], dtype="int64")),
    (S(2, 4), S(2, values=[-100, -100], dtype="int64"), {"reduction": "sum"}),
    (S(3, 4), S(3, values=[0, 1, 0], dtype="uint8"), {"ignore_index": 1}),
]
FAR: dict[str, Any] = {"values": [[1e4, -1e4, 0.0, 1.0], [1e4, 1e4, 1e4, 1e4], [-1e4, -1e4, -1e4, -1e4]], "grad": False}
ERRORS: list[Any] = [
    ((S(3, 4), S(3, values=[0, 4, 0], dtype="int64")), IndexError),
    ((S(3, 4), S(3, values=[0, -1, 0], dtype="int64")), IndexError),
    ((S(2, 4, 2), S(2, 2, values=[[0, 1], [7, 0]], dtype="int64")), IndexError),
    ((S(3, 4), classes(2)), ValueError),
    ((S(3, 4, 2), classes(3, 3)), RuntimeError),
    ((S(4), classes(2)), ValueError),
    ((S(3, 4), classes(3), {"reduction": "max"}), ValueError),
    ((S(3, 4), S(3, dtype="int32", low=0, high=4)), RuntimeError),
    ((S(3, 4, dtype="int64"), classes(3)), NotImplementedError),
    ((S(3, 4), classes(3), {"weight": S(3)}), RuntimeError),
    ((S(3, 4), classes(3), {"weight": S(4, dtype="float32")}), RuntimeError),
]
SOFT: list[Any] = [
    *[(S(3, 4), S(3, 4, low=0.0, high=1.0), {"reduction": r}) for r in REDUCTIONS],
    (S(4), S(4, low=0.0, high=1.0), {"label_smoothing": 0.3}),
    (S(2, 4, 3), S(2, 4, 3, low=0.0, high=1.0), {"label_smoothing": 0.3, "reduction": "none"}),
]
SMOOTH: list[Any] = [
    *[(S(6, 4), S(6, **IGNORED), {"ignore_index": -1, "label_smoothing": 0.3, "reduction": r}) for r in REDUCTIONS],
    (S(3, 4), classes(3), {"label_smoothing": 1.0}),
    *[
        (S(**FAR), S(3, values=[1, 2, 3], dtype="int64"), {"label_smoothing": s, "reduction": "none"})
        for s in (0.0, 0.1)
    ],
]


def spread(t: Any, shape: Any, ignore: int, smoothing: float, weight: Any) -> Any:
    """What each class counts for each target, with the classes last."""
    n = shape[1 if len(shape) > 1 else 0]
    w = np.ones(n) if weight is None else weight
    used = t != ignore
    hot = np.eye(n)[np.where(used, t, 0).astype(int)]
    return ((1 - smoothing) * hot * w + smoothing / n * w) * used[..., None], (hot * w).sum(-1) * used


def nll_loss(
    x: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", smoothing: float = 0.0
) -> Any:
    t = t.reshape(()) if x.ndim == 1 else t
    q, counts = spread(t, x.shape, ignore_index, smoothing, weight)
    last = np.moveaxis(x, 1, -1) if x.ndim > 1 else x
    loss = -np.where(q == 0, 0, q * last).sum(-1)
    if reduction == "mean":
        return loss.sum() / counts.sum()
    return loss.sum() if reduction == "sum" else loss


def log_softmax(x: Any) -> Any:
    dim = 1 if x.ndim > 1 else 0
    shifted = x - x.max(dim, keepdims=True, initial=-np.inf)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


def cross_entropy(
    x: Any, t: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
) -> Any:
    if t.shape != x.shape:
        return nll_loss(log_softmax(x), t, weight, ignore_index, reduction, label_smoothing)
    dim = 1 if x.ndim > 1 else 0
    q = t * (1 - label_smoothing) + label_smoothing / x.shape[dim]
    loss = -(q * log_softmax(x)).sum(dim)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def linear_cross_entropy(x: Any, w: Any, t: Any, linear_bias: Any = 0, **options: Any) -> Any:
    logits = np.einsum("...i,c...i->...c" if w.ndim == 2 else "ni,cki->nck", x, w)
    return cross_entropy(logits + linear_bias, t, **options)


RECORDS = [
    op(F + "nll_loss", samples=HARD, reference=nll_loss, errors=[*ERRORS, ((S(), classes()), ValueError)]),
    op(
        F + "cross_entropy",
        samples=HARD + SOFT + SMOOTH,
        reference=cross_entropy,
        errors=[
            *ERRORS,
            ((S(3, 4), classes(3, 4)), RuntimeError),
            ((S(3, 4), classes(3), {"label_smoothing": 1.5}), RuntimeError),
            ((S(3, 4), S(3, 4, low=0.0, high=1.0), {"ignore_index": 1}), RuntimeError),
        ],
    ),
    op(
        F + "linear_cross_entropy",
        reference=linear_cross_entropy,
        samples=[
            (S(3, 2), S(4, 2), classes(3)),
            (S(2), S(4, 2), classes(), {"reduction": "none"}),
            (S(3, 2), S(4, 2), classes(3), {"linear_bias": S(4), "label_smoothing": 0.2}),
            (S(3, 2), S(4, 5, 2), classes(3, 5), {"ignore_index": 1, "linear_bias": S(4, 5)}),
            (S(3, 2), S(4, 2), S(3, 4, low=0.0, high=1.0)),
        ],
        errors=[
            ((S(2, 3, 2), S(4, 2), classes(2, 3)), RuntimeError),
            ((S(3, 2), S(4, 3), classes(3)), RuntimeError),
            ((S(3, 2), S(4, 2), classes(3), {"linear_bias": S(3)}), RuntimeError),
            ((S(2), S(4, 5, 2), classes(5)), RuntimeError),
        ],
    ),
]
