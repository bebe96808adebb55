"""Records for operators on bits."""

import numpy as np

from tests.ops.catalog import S, op

PAIRS = [(S(3, 4, low=0, high=99), S(4, low=0, high=99)), (S(3, low=0, high=99), 5), (6, S(3, low=0, high=99))]
SIGNED = [(S(6, low=-99, high=99, dtype="int64"), S(6, low=-99, high=99, dtype="int64"))]
SHIFTS = [
    (S(4, low=0, high=8), S(4, low=0, high=4)),
    (S(4, low=0, high=8), 2),
    (S(4, dtype="int64", low=-99, high=99), S(4, dtype="int64", low=0, high=6)),
]
FLOATS = [((S(3, dtype="float64"), S(3, dtype="float64")), NotImplementedError)]


RECORDS = [
    op("bitwise_and", samples=PAIRS + SIGNED, reference=np.bitwise_and, dtypes="i", grad=False, errors=FLOATS),
    op("bitwise_or", samples=PAIRS + SIGNED, reference=np.bitwise_or, dtypes="i", grad=False, errors=FLOATS),
    op("bitwise_xor", samples=PAIRS + SIGNED, reference=np.bitwise_xor, dtypes="i", grad=False, errors=FLOATS),
    op(
        "bitwise_not",
        samples=[(S(3, 4, low=-99, high=99, dtype="int64"),), (S(3, dtype="bool"),)],
        reference=np.bitwise_not,
        dtypes="i",
        grad=False,
        errors=[((S(3, dtype="float64"),), NotImplementedError)],
    ),
    op("bitwise_left_shift", samples=SHIFTS, reference=np.left_shift, dtypes="i", grad=False, errors=FLOATS),
    op("bitwise_right_shift", samples=SHIFTS, reference=np.right_shift, dtypes="i", grad=False, errors=FLOATS),
]
