"""Records for circular and hyperbolic functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),), (S(2, 1, 3),)]
UNIT = (-0.9, 0.9)


def real(fn: Any) -> Any:
    """A NumPy function as torch has it: of bools and integers too."""
    return lambda x: fn(x + 0.0)


def sinc(x: Any) -> Any:
    return np.where(x == 0, 1, np.sin(np.pi * x) / np.where(x == 0, 1, np.pi * x))


RECORDS = [
    op("sin", samples=ONE, reference=real(np.sin), dtypes="bifc", errors=[((1.0,), TypeError)]),
    op("cos", samples=ONE, reference=real(np.cos), dtypes="bifc"),
    op("tan", samples=ONE, reference=real(lambda x: np.sin(x) / np.cos(x)), dtypes="bifc", domain=(-1.2, 1.2)),
    op("asin", samples=ONE, reference=real(np.arcsin), dtypes="bifc", domain=UNIT),
    op("acos", samples=ONE, reference=real(np.arccos), dtypes="bifc", domain=UNIT),
    op("atan", samples=ONE, reference=real(np.arctan), dtypes="bifc"),
    op("sinh", samples=ONE, reference=real(lambda x: (np.exp(x) - np.exp(-x)) / 2), dtypes="bifc"),
    op("cosh", samples=ONE, reference=real(lambda x: (np.exp(x) + np.exp(-x)) / 2), dtypes="bifc"),
    op("tanh", samples=ONE, reference=real(lambda x: np.sinh(x) / np.cosh(x)), dtypes="bifc"),
    op("nn.functional.tanh", samples=ONE, reference=real(np.tanh), dtypes="bifc"),
    op("asinh", samples=ONE, reference=real(np.arcsinh), dtypes="bifc"),
    op("acosh", samples=ONE, reference=real(np.arccosh), dtypes="bifc", domain=(1.1, 3.0)),
    op("atanh", samples=ONE, reference=real(np.arctanh), dtypes="bifc", domain=UNIT),
    op(
        "atan2",
        samples=[(S(3, 4), S(3, 4)), (S(3, 1), S(4)), (S(), S(2)), (S(0, 3), S(1))],
        reference=lambda a, b: np.angle(b + 1j * a),
        dtypes="bif",
        errors=[
            ((S(3), 1.0), TypeError),
            ((S(3), S(2)), RuntimeError),
            ((S(3, dtype="complex128"), S(3)), NotImplementedError),
        ],
    ),
    op("sinc", samples=[*ONE, (S(values=[0.0, 0.5, -1.5]),)], reference=sinc, dtypes="bifc"),
    op(
        "deg2rad",
        samples=ONE,
        reference=real(np.radians),
        dtypes="bif",
        domain=(-180, 180),
        errors=[((S(3, dtype="complex128"),), RuntimeError)],
    ),
    op(
        "rad2deg", samples=ONE, reference=real(np.degrees), dtypes="bif", tol={"float16": (2e-3, 5e-2)}
    ),  # results reach 115: atol is an ulp there
]
