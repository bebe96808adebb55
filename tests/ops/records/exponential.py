"""Records for exponentials and logarithms."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),), (S(2, 1, 3),)]
POSITIVE: list[Any] = [(S(3, 4, low=0.1, high=3.0),), (S(low=1, high=3),), (S(0, 3),)]
PAIR: list[Any] = [(S(3, 4), S(3, 4)), (S(3, 1), S(4)), (S(), S(2, 3)), (S(0, 3), S(1))]
FACTORS: list[Any] = [
    (S(3, 4), S(3, 4, low=0.5, high=3.0)),
    (S(3, 1), S(4, low=1.0, high=3.0)),
    (S(2, 3), 2.5),
    (1.5, S(2, 3, low=1.0, high=4.0)),
    (S(0, 3), S(1, low=1.0, high=2.0)),
]
WRONG: list[Any] = [((1.0,), TypeError), ((None,), TypeError)]


def real(fn: Any) -> Any:
    """A NumPy function as torch has it: of bools and integers too."""
    return lambda x: fn(x + 0.0)


def product(log: Any) -> Any:
    return lambda a, b: np.where(np.asarray(a) == 0, 0.0, a * log(np.asarray(b, np.float64)))


RECORDS = [
    op("exp", samples=ONE, reference=real(np.exp), dtypes="bifc", errors=WRONG),
    op("exp2", samples=ONE, reference=lambda x: np.exp(x * np.log(2.0)), dtypes="bifc"),
    op("expm1", samples=ONE, reference=real(lambda x: np.exp(x) - 1), dtypes="bifc"),
    op("log", samples=POSITIVE, reference=real(np.log), dtypes="bifc", errors=WRONG),
    op("log2", samples=POSITIVE, reference=real(lambda x: np.log(x) / np.log(2)), dtypes="bifc"),
    op("log10", samples=POSITIVE, reference=real(lambda x: np.log(x) / np.log(10)), dtypes="bifc"),
    op("log1p", samples=ONE, reference=real(lambda x: np.log(1 + x)), dtypes="bifc", domain=(-0.8, 2.0)),
    op(
        "logaddexp",
        samples=PAIR,
        reference=lambda a, b: np.log(np.exp(a) + np.exp(b)),
        dtypes="fc",
        domain=(-1.4, 1.4),  # |imaginary part of the result| stays below pi, one branch for all
        errors=[((S(3), S(2)), RuntimeError), ((S(3), 1.0), TypeError)],
    ),
    op(
        "logaddexp2",
        samples=PAIR,
        reference=lambda a, b: np.log2(np.exp2(a) + np.exp2(b)),
        errors=[((S(3, dtype="int64"), S(3, dtype="int64")), NotImplementedError)],
    ),
    op(
        "xlogy",
        samples=[*FACTORS, (S(values=[0.0, 0.0, 2.0]), S(values=[0.5, 2.0, 1.0]))],
        reference=product(np.log),
        dtypes="bif",
        errors=[((1.0, 2.0), TypeError), ((S(3), S(2)), RuntimeError)],
    ),
    op("special.xlog1py", samples=FACTORS, reference=product(np.log1p), dtypes="bif", errors=[((1.0, 2.0), TypeError)]),
]
