"""Records for connectionist temporal classification."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .loss import REDUCTIONS, F

R: dict[str, Any] = {"dtype": "float64", "low": -3.0, "high": 0.0}
PADDED = S(2, 2, values=[[1, 2], [2, 2]], dtype="int64")
FULL = S(2, values=[4, 4], dtype="int64")
SHORT = S(2, values=[3, 2], dtype="int64")


def lengths(*values: int) -> S:
    return S(len(values), values=list(values), dtype="int64")


def read(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    """What a path says: repeats merged, blanks removed."""
    return tuple(c for c, _ in itertools.groupby(path) if c != blank)


def ctc_loss(
    x: Any, targets: Any, frames: Any, labels: Any, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
) -> Any:
    """Every path is tried: nothing is shared with the recursion under test."""
    single = x.ndim == 2
    x = x[:, None] if single else x
    frames, labels = np.atleast_1d(frames), np.atleast_1d(labels)
    ends = np.cumsum(labels)
    loss = np.zeros(x.shape[1])
    for n in range(x.shape[1]):
        flat = targets[ends[n] - labels[n] : ends[n]] if targets.ndim == 1 else targets[n]
        wanted = tuple(int(c) for c in flat[: labels[n]])
        total = sum(
            np.exp(sum(x[t, n, c] for t, c in enumerate(path)))
            for path in itertools.product(range(x.shape[2]), repeat=int(frames[n]))
            if read(path, blank) == wanted
        )
        loss[n] = -np.log(total)
    if zero_infinity:
        loss[np.isinf(loss)] = 0
    if reduction == "mean":
        return (loss / np.maximum(labels, 1)).mean()
    return loss.sum() if reduction == "sum" else loss[0] if single else loss


# The gradient is torch's, exact only behind a log_softmax: test_losses.py differentiates it there.
RECORDS = [
    op(
        F + "ctc_loss",
        reference=ctc_loss,
        grad=False,
        samples=[
            *[(S(4, 2, 3, **R), PADDED, FULL, lengths(2, 1), {"reduction": r}) for r in REDUCTIONS],
            (S(4, 2, 3, **R), S(3, values=[1, 2, 2], dtype="int64"), SHORT, lengths(1, 2), 0, "sum"),
            (S(4, 2, 3, **R), PADDED, (4, 3), (2, 2), {"reduction": "none"}),
            (S(4, 2, 3, **R), S(2, 1, values=[[0], [1]], dtype="int64"), FULL, lengths(1, 1), 2),
            (S(4, 2, 3, **R), PADDED, lengths(0, 4), lengths(0, 0), {"reduction": "none"}),
            (S(4, 2, 3, **R), PADDED, lengths(1, 2), lengths(2, 2), {"reduction": "none"}),
            (S(4, 2, 3, **R), PADDED, lengths(1, 2), lengths(2, 2), 0, "mean", True),
            (S(4, 3, **R), S(2, values=[1, 2], dtype="int64"), lengths(4), lengths(2)),
            (S(1, 1, 2, **R), S(1, 1, values=[[1]], dtype="int64"), (1,), (1,)),
        ],
        errors=[
            ((S(4, 2, 3, **R), PADDED, lengths(5, 4), lengths(2, 2)), RuntimeError),
            ((S(4, 2, 3, **R), PADDED, lengths(-1, 4), lengths(2, 2)), RuntimeError),
            ((S(4, 2, 3, **R), PADDED, FULL, lengths(3, 2)), RuntimeError),
            ((S(4, 2, 3, **R), PADDED, lengths(4), lengths(2, 2)), RuntimeError),
            ((S(4, 2, 3, **R), PADDED, FULL, lengths(2, 2), 3), RuntimeError),
            ((S(4, 2, 3, **R), PADDED, FULL, lengths(2, 2), 0, "max"), ValueError),
            ((S(4, 2, 3, **R), S(4, values=[1, 2, 1, 2], dtype="int64"), FULL, lengths(2, 1)), RuntimeError),
            ((S(4, 2, 3, **R), S(2, 1, values=[[1], [3]], dtype="int64"), FULL, lengths(1, 1)), IndexError),
            ((S(4, 2, 3, dtype="float16"), PADDED, FULL, lengths(2, 2)), NotImplementedError),
            ((S(4, 0, 3, **R), S(0, 2, dtype="int64"), lengths(), lengths()), RuntimeError),
        ],
    )
]
