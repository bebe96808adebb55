"""Records for linear systems and inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import regular, through

SINGULAR = S(values=[[1.0, 2.0], [2.0, 4.0]])
BAD_MATRIX = [((S(2, 3),), RuntimeError), ((S(3),), RuntimeError)]


def solved(a: Any, b: Any, *, left: bool = True) -> Any:
    inverse = np.linalg.inv(a)
    if left:
        vector = b.ndim == 1 or b.shape == a.shape[:-1]
        return (inverse @ b[..., None])[..., 0] if vector else inverse @ b
    return b @ inverse


def no_info(fn: Any) -> Any:
    """What an `_ex` form returns when all went well."""

    def run(a: Any, *args: Any, **kwargs: Any) -> Any:
        return fn(a, *args, **kwargs), np.zeros(a.shape[:-2], np.int32)

    return run


def square(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    """`a`, a regular matrix once its leading sizes are one, in its own shape."""
    n = round(int(np.prod(a.shape)) ** 0.5)
    (made,) = regular(package, a.reshape(n, n))
    return (made.reshape(a.shape), *rest)


SYSTEMS: list[Any] = [
    (S(3, 3), S(3)),
    (S(3, 3), S(3, 2)),
    (S(2, 3, 3), S(2, 3)),  # one vector for each matrix
    (S(4, 3, 3), S(3)),
    (S(3, 3, 3), S(3, 3)),
    (S(3, 3), S(4, 3, 2)),
    (S(2, 1, 3, 3), S(4, 3, 2)),
    (S(3, 3), S(2, 3), {"left": False}),
    (S(3, 3), S(4, 2, 3), {"left": False}),
    (S(0, 0), S(0)),
    (S(3, 3), S(3, 0)),
    (S(0, 3, 3), S(0, 3, 2)),
]
MATRICES: list[Any] = [
    (S(3, 3),),
    (S(1, 1),),
    (S(2, 3, 3),),
    (S(2, 1, 4, 4),),
    (S(0, 0),),
    (S(2, 0, 0),),
    (S(0, 3, 3),),
]

RECORDS = [
    through("linalg.solve", samples=SYSTEMS, prepare=regular, reference=solved, dtypes="wc"),
    op(
        "linalg.solve",
        samples=[(S(values=[[2.0, 0.0], [0.0, 4.0]]), S(2))],
        dtypes="wc",
        errors=[
            ((SINGULAR, S(2)), RuntimeError),
            ((S(2, 3), S(2)), RuntimeError),
            ((S(2, 2), S(3)), RuntimeError),
            ((S(2, 2), S()), RuntimeError),
            ((S(2, 2), S(2), {"left": False}), RuntimeError),
            ((S(2, 2), S(2, dtype="float32")), RuntimeError),
            ((S(2, 2, dtype="int64"), S(2, dtype="int64")), RuntimeError),
            ((S(2, 2, dtype="float16"), S(2, dtype="float16")), NotImplementedError),
        ],
    ),
    through("linalg.solve_ex", samples=SYSTEMS, prepare=regular, reference=no_info(solved), dtypes="wc"),
    op(
        "linalg.solve_ex",
        samples=[(SINGULAR, S(2, 1)), (S(values=[[0.0, 0.0], [0.0, 0.0]]), S(3, 2, 1))],
        dtypes="w",
        grad=False,
        errors=[((SINGULAR, S(2), {"check_errors": True}), RuntimeError)],
    ),
    *[
        through(name, samples=MATRICES, prepare=regular, reference=np.linalg.inv, dtypes="wc")
        for name in ("linalg.inv", "inverse")
    ],
    op(
        "linalg.inv",
        samples=[(S(values=[[2.0, 0.0], [0.0, 4.0]]),)],
        dtypes="wc",
        errors=[
            *BAD_MATRIX,
            ((SINGULAR,), RuntimeError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2, dtype="float16"),), RuntimeError),
        ],
    ),
    through("linalg.inv_ex", samples=MATRICES, prepare=regular, reference=no_info(np.linalg.inv), dtypes="wc"),
    op(
        "linalg.inv_ex",
        samples=[(SINGULAR,), (S(values=[[[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]]),)],
        dtypes="w",
        grad=False,
        errors=[((SINGULAR, {"check_errors": True}), RuntimeError)],
    ),
    through(
        "linalg.tensorsolve",
        samples=[(S(2, 3, 6), S(2, 3)), (S(6, 2, 3), S(6)), (S(2, 6, 3), S(2, 3), (1,))],
        prepare=square,
        reference=lambda a, b, dims=None: np.linalg.tensorsolve(a, b, axes=dims),
        dtypes="wc",
        errors=[
            ((S(4, 4), S(2)), RuntimeError),
            ((S(4, 4), S(4), (7,)), IndexError),
            ((S(4, 4), S(4), (0, 0)), RuntimeError),
        ],
    ),
    through(
        "linalg.tensorinv",
        samples=[(S(2, 3, 6),), (S(6, 2, 3), 1), (S(4, 2, 2), {"ind": 1})],
        prepare=square,
        reference=np.linalg.tensorinv,
        dtypes="wc",
        errors=[((S(4, 4), 0), RuntimeError), ((S(4, 2, 2), 2), RuntimeError)],
    ),
]
