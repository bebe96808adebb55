"""Records for powers and exponentials of matrices, and two short forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import Record, S, op
from tests.ops.matrices import regular, through

SHAPES: list[Any] = [(S(3, 3),), (S(1, 1),), (S(2, 3, 3),), (S(2, 1, 2, 2),), (S(0, 0),), (S(2, 0, 0),), (S(0, 3, 3),)]
SQUARE = [((S(2, 3), 2), RuntimeError), ((S(3), 2), RuntimeError), ((S(2, 2), 2.5), TypeError)]


def power(a: Any, n: int) -> Any:
    if n < 0:
        a, n = np.linalg.inv(a), -n
    result = np.broadcast_to(np.eye(a.shape[-1], dtype=a.dtype), a.shape)
    for _ in range(n):
        result = result @ a
    return result


def taylor(a: Any) -> Any:
    term = total = np.broadcast_to(np.eye(a.shape[-1]), a.shape) + 0 * a
    for k in range(1, 80):
        term = term @ a / k
        total = total + term
    return total


def powers(x: Any, N: int | None = None) -> Any:
    x = x.reshape(x.shape or (1,))
    return x[..., None] ** np.arange(x.shape[-1] if N is None else N)


def exponentials(name: str) -> list[Record]:
    """Half types are widened; torch overflows in them, so the series is the judge."""
    return [
        op(
            name,
            samples=[*SHAPES, (S(3, 3, low=-6, high=6),), (S(2, 3, 3, low=-1e-8, high=1e-8),)],
            reference=taylor,
            dtypes="wc",
            # torch squares in float32 itself.
            tol={"float32": (2e-4, 1e-4), "complex64": (2e-4, 1e-4)},
            errors=[((S(2, 3),), RuntimeError), ((S(3),), RuntimeError), ((S(2, 2, dtype="int64"),), RuntimeError)],
        ),
        op(name, samples=[(S(3, 3, low=-0.5, high=0.5),), (S(2, 2, 2),)], reference=taylor, dtypes="f", torch=False),
    ]


RECORDS = [
    *[
        record
        for name in ("matrix_power", "linalg.matrix_power")
        for record in (
            op(
                name, samples=[(*s, n) for s in SHAPES for n in (0, 1, 2)], reference=power, dtypes="fic", errors=SQUARE
            ),
            op(name, samples=[(*s, n) for s in SHAPES for n in (3, 5, 6)], reference=power, dtypes="wic"),
            through(
                name,
                samples=[(*s, n) for s in SHAPES for n in (-1, -2, -3)],
                prepare=regular,
                reference=power,
                dtypes="wc",
            ),
        )
    ],
    op(
        "linalg.matrix_power",
        samples=[(S(values=[[2.0]]), -1)],
        dtypes="w",
        errors=[
            ((S(values=[[0.0]]), -1), RuntimeError),
            ((S(2, 2, dtype="int64"), -1), RuntimeError),
            ((S(2, 2), True), TypeError),
        ],
    ),
    *exponentials("matrix_exp"),
    *exponentials("linalg.matrix_exp"),
    op(
        "linalg.vander",
        samples=[
            (S(3),),
            (S(3), {"N": 2}),
            (S(3), {"N": 5}),
            (S(2, 3), {"N": 4}),
            (S(), {"N": 3}),
            (S(2, 0), {"N": 3}),
            (S(1), {"N": 4}),
        ],
        reference=powers,
        dtypes="wic",
        errors=[
            ((S(3), {"N": 1}), RuntimeError),
            ((S(1),), RuntimeError),
            ((S(3), {"N": 2.5}), TypeError),
            ((S(3, dtype="bool"),), RuntimeError),
            ((S(3, dtype="float16"),), RuntimeError),
        ],
    ),
    op(
        "linalg.vecdot",
        samples=[
            (S(3), S(3)),
            (S(2, 3), S(3)),
            (S(2, 3), S(2, 3), {"dim": 0}),
            (S(2, 1, 3), S(4, 3)),
            (S(), S()),
            (S(0), S(0)),
            (S(0, 3), S(0, 3), {"dim": 0}),
        ],
        reference=lambda x, y, dim=-1: np.asarray(x.conj() * y).sum(dim) if x.ndim else x.conj() * y,
        dtypes="fc",
        errors=[
            ((S(3, dtype="int64"), S(3, dtype="int64")), RuntimeError),
            ((S(3, dtype="float64"), S(3, dtype="float32")), RuntimeError),
            ((S(3), S(3), {"dim": 1}), IndexError),
            ((S(3), S(2)), RuntimeError),
        ],
    ),
    op(
        "linalg.diagonal",
        samples=[
            (S(3, 3),),
            (S(2, 3, 4),),
            (S(2, 3, 4), {"offset": 1}),
            (S(2, 3, 4), {"offset": -1, "dim1": 0, "dim2": 2}),
            (S(0, 3),),
        ],
        reference=lambda a, offset=0, dim1=-2, dim2=-1: np.diagonal(a, offset, dim1, dim2),
        dtypes="bifc",
        errors=[((S(3),), IndexError), ((S(2, 2), {"dim1": 1, "dim2": -1}), RuntimeError)],
    ),
]
