"""Records for writing at positions that tensors give for several dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ROWS = S(2, dtype="int64", values=[2, 0])
COLUMNS = S(2, dtype="int64", values=[1, 1])
TWICE = S(3, dtype="int64", values=[1, 0, 1])
MASK = S(3, dtype="bool", values=[True, False, True])


def index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    out = x.copy()
    if not accumulate:
        out[tuple(indices)] = values
    elif x.dtype == bool:
        np.logical_or.at(out, tuple(indices), values)
    else:
        np.add.at(out, tuple(indices), values)
    return out


RECORDS = [
    op(
        "index_put",
        samples=[
            (S(3, 2), (ROWS,), S(2, 2)),
            (S(3, 2), (ROWS, COLUMNS), S(2)),
            (S(3, 2), (ROWS,), S()),
            (S(3, 2), (TWICE,), S(3, 2), True),
            (S(3, 2, 2), (TWICE, TWICE), S(2), {"accumulate": True}),
            (S(3, 2), (MASK,), S(2, 2)),
            (S(3, 2), (MASK, COLUMNS), S(2)),
            (S(3, 2), (S(0, dtype="int64"),), S(0, 2)),
            (S(3), (S(1, dtype="int32", values=[-1]),), S(1)),
            (S(3, 2), (S(2, 1, dtype="int64", values=[[2], [0]]), COLUMNS), S(1), True),
        ],
        reference=index_put,
        dtypes="bifc",
        errors=[
            ((S(2, 2), (ROWS,), S(2, 2)), IndexError),
            ((S(3, 2), (ROWS,), S(3, 2)), RuntimeError),
            ((S(3, 2), (ROWS, TWICE), S(2)), IndexError),
            ((S(3), (ROWS, ROWS), S(2)), IndexError),
            ((S(3, 2), (ROWS,), S(2, 2, dtype="int64")), RuntimeError),
            ((S(3, 2), ROWS, S(2, 2)), TypeError),
            ((S(4, 2), (MASK,), S()), IndexError),
            ((S(3, 2), (S(2, dtype="float64"),), S()), IndexError),
        ],
    )
]
