"""Records for windows on memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from tests.ops.catalog import S, op


def window(x: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    flat = np.ascontiguousarray(x).reshape(-1)[offset:]
    return as_strided(flat, size, [s * x.itemsize for s in stride]).copy()


def unfold(x: Any, dim: int, size: int, step: int) -> Any:
    if x.ndim == 0:
        return x.reshape(1)[:size]
    every = (slice(None),) * (dim % x.ndim) + (slice(None, None, step),)
    return sliding_window_view(x, size, dim)[every]


RECORDS = [
    op(
        "select",
        samples=[(S(2, 3), 0, 1), (S(2, 3, 4), -1, -2), (S(3), 0, 0)],
        reference=lambda x, dim, index: np.take(x, index, dim),
        dtypes="bifc",
        errors=[((S(2, 3), 0, 2), IndexError), ((S(2, 3), 2, 0), IndexError), ((S(), 0, 0), IndexError)],
    ),
    op(
        "narrow",
        samples=[(S(4, 3), 0, 1, 2), (S(4, 3), -1, -2, 1), (S(4), 0, 4, 0)],
        reference=lambda x, dim, start, n: np.take(
            x, range(start % (x.shape[dim] + (start >= 0)), x.shape[dim]), dim
        ).take(range(n), dim),
        dtypes="bifc",
        errors=[
            ((S(4), 0, 2, 3), RuntimeError),
            ((S(4), 0, 5, 0), IndexError),
            ((S(4), 0, 0, -1), RuntimeError),
            ((S(), 0, 0, 1), RuntimeError),
        ],
    ),
    op(
        "Tensor.unfold",
        samples=[(S(7), 0, 3, 2), (S(2, 5), 1, 2, 1), (S(5, 2), 0, 5, 1), (S(), 0, 1, 1)],
        reference=unfold,
        dtypes="bifc",
        errors=[((S(3), 0, 4, 1), RuntimeError), ((S(3), 0, 2, 0), RuntimeError), ((S(3), 1, 2, 1), IndexError)],
    ),
    op(
        "as_strided",
        samples=[
            (S(12), (3, 4), (4, 1)),
            (S(3, 4), (2, 3), (1, 2), 1),
            (S(9), (4, 4), (1, 1)),  # overlapping
            (S(9), (2, 3), (0, 1)),
            (S(4), (), (), 2),
        ],
        reference=window,
        dtypes="bifc",
        layouts=False,  # defined by the storage, not by the values
        errors=[
            ((S(4), (2,), (1, 1)), RuntimeError),
            ((S(4), (2,), (-1,)), RuntimeError),
            ((S(4), (400,), (400,)), RuntimeError),
        ],
    ),
]
