"""Records for comparisons and tests."""

import numpy as np

from tests.ops.catalog import S, op

INF, NAN = float("inf"), float("nan")
ODD = S(6, values=[NAN, 1.0, INF, -INF, 0.0, -2.5])
PAIRS = [
    (S(3, 4), S(3, 4)),
    (S(3, 4), S(4)),
    (S(3, 4), 1),
    (S(), S(3)),
    (S(0, 4), S(4)),
    (S(4, values=[0, 1, 2, 3]), S(4, values=[0, 2, 1, 3])),
]
TENSORS = [pair for pair in PAIRS if pair[1] != 1]
ORDER = {"dtypes": "bif", "grad": False}
COMPLEX = [((S(3, dtype="complex128"), S(3, dtype="complex128")), NotImplementedError)]
NUMBER_FIRST = [((1, S(3)), TypeError)]


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(a, b, rtol, atol, equal_nan)


RECORDS = [
    op("eq", samples=PAIRS, reference=np.equal, dtypes="bifc", grad=False, errors=NUMBER_FIRST),
    op("ne", samples=PAIRS, reference=np.not_equal, dtypes="bifc", grad=False),
    op("not_equal", samples=PAIRS, reference=np.not_equal, dtypes="bifc", grad=False),
    op("lt", samples=PAIRS, reference=np.less, errors=COMPLEX, **ORDER),
    op("less", samples=PAIRS, reference=np.less, **ORDER),
    op("le", samples=PAIRS, reference=np.less_equal, errors=COMPLEX, **ORDER),
    op("less_equal", samples=PAIRS, reference=np.less_equal, **ORDER),
    op("gt", samples=PAIRS, reference=np.greater, errors=COMPLEX, **ORDER),
    op("greater", samples=PAIRS, reference=np.greater, **ORDER),
    op("ge", samples=PAIRS, reference=np.greater_equal, errors=COMPLEX, **ORDER),
    op("greater_equal", samples=PAIRS, reference=np.greater_equal, **ORDER),
    op("isnan", samples=[(ODD,), (S(2, 3),)], reference=np.isnan, dtypes="fc", grad=False),
    op("isinf", samples=[(ODD,), (S(2, 3),)], reference=np.isinf, dtypes="fc", grad=False),
    op("isfinite", samples=[(ODD,), (S(2, 3),)], reference=np.isfinite, dtypes="fc", grad=False),
    op("isposinf", samples=[(ODD,), (S(2, 3),)], reference=np.isposinf, dtypes="f", grad=False),
    op("isneginf", samples=[(ODD,), (S(2, 3),)], reference=np.isneginf, dtypes="f", grad=False),
    op(
        "isreal",
        samples=[(S(2, 3),), (S(2, values=[1 + 1j, 2], dtype="complex128"),)],
        reference=np.isreal,
        dtypes="bifc",
        grad=False,
    ),
    op("logical_and", samples=TENSORS, reference=np.logical_and, dtypes="bifc", grad=False),
    op("logical_or", samples=TENSORS, reference=np.logical_or, dtypes="bifc", grad=False),
    op("logical_xor", samples=TENSORS, reference=np.logical_xor, dtypes="bifc", grad=False),
    op(
        "logical_not", samples=[(S(3, 4),), (S(2, values=[0, 1]),)], reference=np.logical_not, dtypes="bifc", grad=False
    ),
    op(
        "isclose",
        samples=[
            (S(3, values=[1.0, 2.0, NAN]), S(3, values=[1.0, 2.5, NAN])),
            (S(3, values=[1.0, 2.0, NAN]), S(3, values=[1.0, 2.5, NAN]), {"equal_nan": True}),
            (S(3, values=[INF, -INF, INF]), S(3, values=[INF, INF, 1.0])),
            (S(3, values=[1.0, 2.0, 4.0]), S(3, values=[2.0, 2.5, 9.0]), 0.25, 0.5),
            (S(2, 3), S(3)),
        ],
        reference=isclose,
        dtypes="fc",
        grad=False,
        errors=[
            ((S(3, dtype="float64"), S(3, dtype="float32")), RuntimeError),
            ((S(3), S(3), -1.0), RuntimeError),
            ((S(3), 1.0), TypeError),
        ],
    ),
    op(
        "isin",
        samples=[
            (S(3, 4, low=0, high=4), S(2, low=0, high=4)),
            (S(5, values=[1, 2, 3, 4, 5]), S(2, 1, values=[[2], [5]]), {"invert": True}),
            (S(4, values=[1, 2, 3, 4]), 3),
        ],
        reference=lambda x, tests, invert=False: np.isin(x, tests, invert=invert),
        dtypes="if",
        grad=False,
        errors=[((S(3, dtype="bool"), S(3, dtype="bool")), RuntimeError), ((1, 2), TypeError)],
    ),
]
