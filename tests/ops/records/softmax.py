"""Records for softmax and its kin."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

F = "nn.functional."
SAMPLES: list[Any] = [
    (S(3, 4), 0),
    (S(3, 4), -1),
    (S(2, 3, 4), 1),
    (S(), 0),
    (S(), -1),
    (S(0, 3), 0),
    (S(0, 3), 1),
    (S(3, 4), 1, {"dtype": vt.float64}),
    (S(3, 4, dtype="int64"), 1, {"dtype": vt.float64}),
]
ERRORS: list[Any] = [
    ((S(3, 4), 2), IndexError),
    ((S(3, 4), -3), IndexError),
    ((S(3), 0.5), TypeError),
    ((S(3, dtype="int64"), 0), RuntimeError),
]


def softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    if x.ndim == 0:
        return np.ones(())
    e = np.exp(x * 1.0)
    return e / e.sum(dim, keepdims=True)


def log_softmax(x: Any, dim: int, dtype: Any = None) -> Any:
    return np.log(softmax(x, dim))


def softmin(x: Any, dim: int, dtype: Any = None) -> Any:
    return softmax(-x, dim)


RECORDS = [
    op("softmax", samples=SAMPLES, reference=softmax, errors=ERRORS),
    op("log_softmax", samples=SAMPLES, reference=log_softmax, errors=ERRORS),
    op("special.softmax", samples=SAMPLES[:2], reference=softmax),
    op("special.log_softmax", samples=SAMPLES[:2], reference=log_softmax),
    op(F + "softmax", samples=SAMPLES, reference=softmax, errors=ERRORS),
    op(F + "log_softmax", samples=SAMPLES, reference=log_softmax, errors=ERRORS),
    op(F + "softmin", samples=SAMPLES, reference=softmin, errors=ERRORS),
    op(F + "gumbel_softmax", samples=[(S(3, 4),), (S(3, 4), 0.5, True), (S(2, 3), {"dim": 0})], random=True),
]
