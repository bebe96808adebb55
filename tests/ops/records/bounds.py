"""Records for bounds: clamp, maximum, minimum, nan_to_num."""

import numpy as np

from tests.ops.catalog import S, op

PAIRS = [(S(3, 4), S(3, 4)), (S(3, 4), S(4)), (S(), S(3)), (S(0, 4), S(4))]
INF, NAN = float("inf"), float("nan")
HOLES = (S(4, values=[NAN, 1.0, INF, 2.0], grad=False), S(4, grad=False))


def clamp(x, min=None, max=None):
    low = -np.inf if min is None else min
    high = np.inf if max is None else max
    out = np.minimum(np.maximum(x, low), high)
    return out.astype(np.int64) if x.dtype.kind in "iu" else out


def nan_to_num(x, nan=0.0, posinf=9.0, neginf=-9.0):
    return np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


RECORDS = [
    op(
        "clamp",
        samples=[
            (S(3, 4), 0, 1),
            (S(3, 4), 0),
            (S(3, 4), None, 1),
            (S(3, 4), {"max": 0, "min": None}),
            (S(3, 4, dtype="float64"), -1, 1),
            (S(3, 4, dtype="int64", low=-5, high=5), -2, 2),
            (S(3, 4), S(4, low=-1, high=0), S(3, 1, low=0, high=1)),
            (S(), 1, 2),
            (S(0, 2), 0, 1),
        ],
        reference=clamp,
        dtypes="if",
        kinks=(-1, 0, 1),
        errors=[
            ((S(3),), RuntimeError),
            ((S(3, dtype="uint8"), 0, 300), RuntimeError),
            ((S(3, dtype="complex128"), 0), NotImplementedError),
        ],
    ),
    op("clip", samples=[(S(3, 4), 0, 1)], reference=clamp, dtypes="if", kinks=(-1, 1)),
    op("clamp_min", samples=[(S(3, 4), 0), (S(3, 4), S(4)), (S(), 1)], reference=clamp, dtypes="if", kinks=(-1, 0)),
    op(
        "clamp_max",
        samples=[(S(3, 4), 0), (S(3, 4), S(4)), (S(), 1)],
        reference=lambda x, max: clamp(x, None, max),
        dtypes="if",
        kinks=(0, 1),
    ),
    op("maximum", samples=[*PAIRS, HOLES], reference=np.maximum, dtypes="f"),
    op("minimum", samples=[*PAIRS, HOLES], reference=np.minimum, dtypes="f"),
    op("fmax", samples=[*PAIRS, HOLES], reference=np.fmax, dtypes="f"),
    op("fmin", samples=[*PAIRS, HOLES], reference=np.fmin, dtypes="f"),
    op(
        "nan_to_num",
        samples=[
            (S(3, 4), {"posinf": 9.0, "neginf": -9.0}),
            (S(4, values=[NAN, 1.0, INF, -INF], grad=False), 5.0, 7.0, -7.0),
            (S(4, values=[NAN, 1.0, INF, -INF], grad=False), {"posinf": 1.0, "neginf": 2.0}),
        ],
        reference=nan_to_num,
        dtypes="f",
        errors=[((S(3), 1j), TypeError)],
    ),
    op(
        "clamp_",
        samples=[(S(3, 4), 0, 1), (S(3, 4), None, S(4))],
        reference=clamp,
        dtypes="f",
        grad=False,
        errors=[((S(3, dtype="int64"), 0.5), RuntimeError), ((S(3),), RuntimeError)],
    ),
    op("clamp_min_", samples=[(S(3, 4), 0), (S(3, 4), S(4))], reference=clamp, grad=False),
    op("clamp_max_", samples=[(S(3, 4), 0), (S(3, 4), S(4))], reference=lambda x, max: clamp(x, None, max), grad=False),
    op("nan_to_num_", samples=[(S(4, values=[NAN, 1.0, INF, -INF]), 5.0, 7.0, -7.0)], reference=nan_to_num, grad=False),
]
