"""Records for the parts of floats: sign, mantissa, exponent, neighbours."""

import numpy as np

from tests.ops.catalog import S, op

# At a jump there is no derivative to compare.
ZEROS = S(2, values=[-0.0, 0.0], grad=False)

RECORDS = [
    op(
        "copysign",
        samples=[(S(3, 4), S(3, 4)), (S(3, 4), S(4)), (S(3, 4), -2.0), (S(2, grad=False), ZEROS)],
        reference=np.copysign,
        dtypes="f",
        kinks=(0,),
    ),
    op(
        "heaviside",
        samples=[(S(5), S(5)), (S(3, values=[-1.0, 0.0, 2.0]), S()), (S(3, 1), S(4))],
        reference=np.heaviside,
        dtypes="if",
        grad=False,
        errors=[((S(3, dtype="float64"), S(3, dtype="float32")), RuntimeError)],
    ),
    op(
        "ldexp",
        samples=[(S(3, 4), S(3, 4)), (S(4), S(4, dtype="int64", low=0, high=4))],
        reference=lambda x, n: x * np.exp2(n),
        dtypes="f",
        errors=[((S(3), 2), TypeError), ((2, S(3)), TypeError)],
    ),
    op(
        "frexp",
        samples=[(S(3, 4, low=-9, high=9),), (S(),), (S(4, values=[0.0, 1.0, -0.75, 96.0], grad=False),)],
        reference=np.frexp,
        dtypes="f",
        kinks=(-8, -4, -2, -1, -0.5, 0, 0.5, 1, 2, 4, 8),
        errors=[((S(3, dtype="int64"),), RuntimeError)],
    ),
    op(
        "nextafter",
        samples=[(S(3, 4), S(3, 4)), (S(3, 4), S(4)), (S(), S())],
        reference=lambda a, b: np.nextafter(a, b),
        dtypes="f",
        errors=[((S(3, dtype="int64"), S(3, dtype="int64")), NotImplementedError)],
    ),
]
