"""Records for what turns positions into indices; `x[index]` itself has tests of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def unravel_index(indices: Any, shape: Any) -> Any:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    every = np.array(list(np.ndindex(*sizes)))
    return [every[indices % len(every), d] for d in range(len(sizes))]


RECORDS = [
    op(
        "unravel_index",
        samples=[
            (S(4, dtype="int64", low=0, high=24), (2, 3, 4)),
            (S(2, 2, dtype="int32", low=0, high=6), [2, 3]),
            (S(3, dtype="int64", low=-6, high=6), (2, 3)),
            (S(3, dtype="int64", low=0, high=5), 5),
            (S(dtype="int64", low=0, high=6), (2, 3)),
        ],
        reference=unravel_index,
        dtypes="i",
        grad=False,
        errors=[
            ((S(2, dtype="float64"), (2, 3)), TypeError),
            ((S(2, dtype="int64", low=0, high=2), (2, -3)), ValueError),
            ((S(2, dtype="int64", low=0, high=2), (2, 1.5)), TypeError),
        ],
    )
]
