"""Records for powers and roots."""

import numpy as np

from tests.ops.catalog import S, op

POSITIVE = [(S(3, 4, low=0.3, high=3),), (S(low=0.3, high=3),), (S(0, 3),)]
EXPONENTS = (0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 2.5, -1.5)


def power(a, b):
    return np.power(np.asarray(a, np.result_type(a, b)), b)


RECORDS = [
    op("sqrt", samples=POSITIVE, reference=np.sqrt, dtypes="ifc"),
    op("rsqrt", samples=[(S(3, 4, low=1, high=4),)], reference=lambda x: 1 / np.sqrt(x), dtypes="ifc"),
    op("reciprocal", samples=[(S(3, 4, low=1, high=4),)], reference=lambda x: 1 / x, dtypes="ifc"),
    op("square", samples=[(S(3, 4),), (S(),)], reference=np.square, dtypes="ifc"),
    op(
        "pow",
        samples=[
            *((S(3, 4, low=0.3, high=3), n) for n in EXPONENTS),
            (S(3, 4, low=0.3, high=3), S(4)),
            (2.5, S(3, 4)),
            (S(low=0.3, high=3), S(3)),
            (S(4, dtype="int64", low=1, high=5), S(4, dtype="int64", low=0, high=4)),
            (S(4, dtype="int64", low=-4, high=5), 3),
        ],
        reference=power,
        dtypes="fc",
        errors=[((S(3, dtype="int64"), -1), RuntimeError), ((S(3), "2"), TypeError)],
    ),
    op(
        "float_power",
        samples=[(S(3, 4, low=1, high=4), 2), (S(4, low=1, high=4), S(4)), (2, S(3))],
        reference=lambda a, b: np.power(np.asarray(a, np.result_type(a, b, np.float64)), b),
        dtypes="ifc",
    ),
    op(
        "Tensor.pow_",
        samples=[(S(3, 4, low=0.3, high=3), 2), (S(3, 4, low=0.3, high=3), S(4))],
        reference=power,
        dtypes="fc",
        grad=False,
        errors=[((S(3, dtype="int64", low=1, high=5), 0.5), RuntimeError)],
    ),
    op(
        "Tensor.float_power_",
        samples=[(S(3, 4, low=1, high=4, dtype="float64"), 2)],
        reference=power,
        grad=False,
        errors=[((S(3, dtype="float32"), 2), RuntimeError)],
    ),
]
