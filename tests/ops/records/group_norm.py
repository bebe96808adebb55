"""Records for norms over groups of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def group_norm(x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    out = np.empty(x.shape)
    size = x.shape[1] // groups
    for n in range(x.shape[0]):
        for i in range(0, x.shape[1], size):
            part = x[n, i : i + size]
            out[n, i : i + size] = (part - part.mean()) / np.sqrt(part.var() + eps)
    lines = (1, -1, *[1] * (x.ndim - 2))
    out = out * (1 if weight is None else weight.reshape(lines))
    return out + (0 if bias is None else bias.reshape(lines))


RECORDS = [
    op(
        "nn.functional.group_norm",
        samples=[
            (S(2, 4, 3), 2),
            (S(2, 6), 3, S(6), S(6)),
            (S(1, 4, 2, 3), 1, S(4), None, 0.5),
            (S(2, 3, 2, 2, 2), 3, S(3), S(3)),
        ],
        reference=group_norm,
        errors=[
            ((S(2, 3, 4), 2), RuntimeError),
            ((S(2, 3, 4), -1), RuntimeError),
            ((S(2, 3, 4), 0), ZeroDivisionError),
            ((S(4), 2), RuntimeError),
            ((S(1, 4), 4), ValueError),
            ((S(2, 4, 3), 2, S(3)), RuntimeError),
            ((S(2, 4, 3), 2, S(4, 1)), RuntimeError),
            ((S(2, 4, 3), 2, S(4), S(4, dtype="float32")), RuntimeError),
            ((S(2, 4, 3, dtype="int64"), 2), NotImplementedError),
        ],
    ),
    op(
        # A mean over nothing is NaN in NumPy: torch is the reference. Its backward fails on some.
        "group_norm",
        samples=[
            (S(0, 4, 3), 2, S(4), S(4)),
            (S(2, 4, 0), 2),
            (S(2, 0, 3), 1),
            (S(2, 4, 1), 4),
            (S(2, 4, 3), 2, None, S(4)),
        ],
        grad=False,
    ),
    op(
        # Far from zero torch loses digits in half types, so NumPy is the reference.
        "group_norm",
        samples=[(S(2, 4, 3, low=9e3, high=1.1e4), 2, S(4), S(4))],
        reference=group_norm,
        torch=False,
        grad=False,
    ),
]
