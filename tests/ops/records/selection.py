"""Records for choosing by a condition."""

import numpy as np

from tests.ops.catalog import S, op

C = S(3, 4, dtype="bool")


def where(c, *choice):
    return np.where(c, *choice) if choice else np.nonzero(c)


RECORDS = [
    op(
        "where",
        samples=[
            (C, S(3, 4), S(3, 4)),
            (C, S(4), S(3, 1)),
            (C, S(3, 4), 1.0),
            (C, 1.0, S(3, 4)),
            (S(4, dtype="bool"), S(), S()),
            (C, 2.5, 1.5),
            (C,),
        ],
        reference=where,
        dtypes="fc",
        errors=[
            ((S(3, dtype="int64"), S(3), S(3)), RuntimeError),
            ((S(3, dtype="bool"), S(3)), TypeError),
            ((True, S(3), S(3)), TypeError),
        ],
    ),
    op(
        "Tensor.where",
        samples=[(S(3, 4), C, S(4)), (S(3, 4), C, 1.0)],
        reference=lambda a, c, b: np.where(c, a, b),
        dtypes="fc",
    ),
    op(
        "masked_fill",
        samples=[(S(3, 4), C, 2.0), (S(3, 4), S(4, dtype="bool"), S()), (S(3, 1), C, -1), (S(), S(dtype="bool"), 1)],
        reference=lambda x, m, v: np.where(m, v, x).astype(x.dtype),
        dtypes="fc",
        errors=[
            ((S(3), S(3, dtype="int64"), 1), RuntimeError),
            ((S(3), S(3, dtype="bool"), S(2)), RuntimeError),
            ((S(3, dtype="int64"), S(3, dtype="bool"), 1j), RuntimeError),
            ((S(3, dtype="uint8"), S(3, dtype="bool"), 256), RuntimeError),
        ],
    ),
    op(
        "Tensor.masked_fill_",
        samples=[(S(3, 4), C, 2.0), (S(3, 4), S(4, dtype="bool"), S())],
        reference=lambda x, m, v: np.where(m, v, x).astype(x.dtype),
        dtypes="fc",
        grad=False,
        errors=[((S(4), C, 2.0), RuntimeError)],
    ),
]
