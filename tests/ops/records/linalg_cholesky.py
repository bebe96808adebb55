"""Records for Cholesky factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import adjoint, positive, through

INDEFINITE = S(values=[[4.0, 2.0, 1.0], [2.0, -3.0, 4.0], [1.0, 4.0, 5.0]])
ONE_BAD = S(values=[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
SHAPES: list[Any] = [(S(3, 3),), (S(1, 1),), (S(2, 3, 3),), (S(2, 1, 4, 4),), (S(0, 0),), (S(2, 0, 0),), (S(0, 2, 2),)]
BOTH = [*SHAPES, *[(*s, {"upper": True}) for s in SHAPES]]


def factor(a: Any, upper: bool = False) -> Any:
    low = np.linalg.cholesky(a)
    return adjoint(low) if upper else low


def product(low: Any, upper: bool) -> Any:
    low = adjoint(low) if upper else low
    return np.tril(low) @ adjoint(np.tril(low))


def factored(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    """A lower triangle with a positive diagonal."""
    n = a.shape[-1]
    eye = package.eye(n, dtype=a.dtype, device=a.device)
    low = package.tril(a) * (1 - eye) + 3 * eye
    return (low, *rest)


def upper_factored(package: Any, a: Any, *rest: Any) -> tuple[Any, ...]:
    low, *rest = factored(package, a, *rest)
    return (adjoint(low), *rest)


def solved(b: Any, low: Any, upper: bool = False) -> Any:
    return np.linalg.inv(product(low, upper)) @ b


RECORDS = [
    through("linalg.cholesky", samples=BOTH, prepare=positive, reference=factor, dtypes="wc"),
    op(
        "linalg.cholesky",
        # The other triangle is not read.
        samples=[(S(values=[[4.0, 99.0], [2.0, 5.0]]),), (S(values=[[4.0, 2.0], [99.0, 5.0]]), {"upper": True})],
        dtypes="wc",
        grad=False,
        layouts=False,
        errors=[
            ((INDEFINITE,), RuntimeError),
            ((ONE_BAD,), RuntimeError),
            ((S(values=[[float("nan")]]),), RuntimeError),
            ((S(2, 3),), RuntimeError),
            ((S(3),), RuntimeError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2, dtype="float16"),), NotImplementedError),
        ],
    ),
    through(
        "linalg.cholesky_ex",
        samples=BOTH,
        prepare=positive,
        reference=lambda a, upper=False: (factor(a, upper), np.zeros(a.shape[:-2], np.int32)),
        dtypes="wc",
    ),
    op(
        "linalg.cholesky_ex",
        samples=[(INDEFINITE,), (INDEFINITE, {"upper": True}), (ONE_BAD,)],
        dtypes="w",
        grad=False,
        errors=[((INDEFINITE, {"check_errors": True}), RuntimeError)],
    ),
    through(
        "cholesky", samples=[*SHAPES, *[(*s, True) for s in SHAPES]], prepare=positive, reference=factor, dtypes="wc"
    ),
    op("cholesky", samples=[(S(values=[[4.0]]),)], dtypes="w", errors=[((INDEFINITE,), RuntimeError)]),
    through(
        "cholesky_inverse",
        samples=[*SHAPES, (S(3, 3), False)],
        prepare=factored,
        reference=lambda low, upper=False: np.linalg.inv(product(low, upper)),
        dtypes="wc",
    ),
    through(
        "cholesky_inverse",
        samples=[(S(3, 3), True), (S(2, 3, 3), True)],
        prepare=upper_factored,
        reference=lambda up, upper: np.linalg.inv(product(up, upper)),
        dtypes="wc",
    ),
    op(
        "cholesky_inverse",
        samples=[(S(values=[[2.0]]),)],
        dtypes="w",
        errors=[
            ((S(values=[[1.0, 0.0], [1.0, 0.0]]),), RuntimeError),
            ((S(2, 3),), RuntimeError),
            ((S(2, 2, dtype="int64"),), NotImplementedError),
        ],
    ),
    through(
        "cholesky_solve",
        samples=[(S(3, 2), S(3, 3)), (S(4, 3, 2), S(3, 3)), (S(3, 2), S(2, 3, 3)), (S(0, 2), S(0, 0))],
        prepare=lambda package, b, a: (b, *factored(package, a)),
        reference=solved,
        dtypes="wc",
    ),
    through(
        "cholesky_solve",
        samples=[(S(3, 2), S(3, 3), True), (S(2, 3, 1), S(2, 3, 3), True)],
        prepare=lambda package, b, a, upper: (b, *upper_factored(package, a), upper),
        reference=solved,
        dtypes="wc",
    ),
    op(
        "cholesky_solve",
        samples=[(S(1, 1), S(values=[[2.0]]))],
        dtypes="w",
        errors=[((S(2), S(2, 2)), RuntimeError), ((S(3, 1), S(2, 2)), RuntimeError)],
    ),
]
