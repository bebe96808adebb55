"""Records for choosing by truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

MASK = S(2, 3, dtype="bool", values=[[True, False, True], [False, False, True]])
ROW = S(3, dtype="bool", values=[True, False, True])
NOTHING = S(2, 3, dtype="bool", values=[[False] * 3] * 2)
HOLES = S(2, 3, values=[[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])


def masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out, mask = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    values = iter(source.reshape(-1))
    for at in np.ndindex(*shape):
        if mask[at]:
            out[at] = next(values)
    return out


def one_hot(x: Any, num_classes: int = -1) -> Any:
    n = int(x.max()) + 1 if num_classes < 0 else num_classes
    return (x[..., None] == np.arange(n)).astype(np.int64)


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    if x.ndim == 0:
        return np.zeros((int(x != 0), 0), np.int64)
    found = [at for at in np.ndindex(*x.shape) if x[at] != 0]
    rows = np.array(found, np.int64).reshape(len(found), x.ndim)
    return tuple(rows.T) if as_tuple else rows


RECORDS = [
    op(
        "masked_select",
        samples=[(S(2, 3), MASK), (S(2, 3), ROW), (S(1, 3), MASK), (S(), ROW), (S(2, 3), NOTHING), (S(0, 3), ROW)],
        reference=lambda x, mask: np.broadcast_to(x, s := np.broadcast_shapes(x.shape, mask.shape))[
            np.broadcast_to(mask, s)
        ],
        dtypes="bifc",
        errors=[((S(2, 3), S(2, 3, dtype="uint8")), RuntimeError), ((S(2, 3), S(2, dtype="bool")), RuntimeError)],
    ),
    op(
        "masked_scatter",
        samples=[
            (S(2, 3), MASK, S(3)),
            (S(2, 3), MASK, S(2, 3)),
            (S(2, 3), ROW, S(4)),
            (S(1, 3), MASK, S(3)),
            (S(), S(dtype="bool", values=True), S(1)),
            (S(2, 3), NOTHING, S(0)),
        ],
        reference=masked_scatter,
        dtypes="bifc",
        errors=[
            ((S(2, 3), MASK, S(2)), RuntimeError),
            ((S(2, 3), MASK, S(3, dtype="int64")), RuntimeError),
            ((S(2, 3), S(2, 3, dtype="uint8"), S(6)), RuntimeError),
        ],
    ),
    op(
        "nonzero",
        samples=[(HOLES,), (HOLES, {"as_tuple": True}), (S(),), (S(values=0.0),), (S(0, 2),), (S(4),)],
        reference=nonzero,
        dtypes="bifc",
        grad=False,
    ),
    op("argwhere", samples=[(HOLES,), (S(),), (S(0, 2),)], reference=nonzero, dtypes="bifc", grad=False),
    op(
        "nn.functional.one_hot",
        samples=[
            (S(4, dtype="int64", low=0, high=3),),
            (S(2, 2, dtype="int64", low=0, high=3), 5),
            (S(dtype="int64", low=0, high=3), 3),
            (S(0, dtype="int64"), 3),
        ],
        reference=one_hot,
        dtypes="i",
        grad=False,
        errors=[
            ((S(2, dtype="int32", low=0, high=3),), RuntimeError),
            ((S(0, dtype="int64"),), RuntimeError),
            ((S(2, dtype="int64", low=3, high=4), 3), RuntimeError),
            ((S(2, dtype="int64", low=-1, high=0),), RuntimeError),
        ],
    ),
]
