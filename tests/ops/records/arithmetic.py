"""Records for sums, products, quotients and remainders."""

import numpy as np

from tests.ops.catalog import S, op

# Away from zero, and small enough that no integer type overflows.
A = S(3, 4, low=5, high=9)
B = S(3, 4, low=1, high=4)
ROW = S(4, low=1, high=4)
SHAPES = [(A, B), (A, ROW), (A, 2), (S(low=5, high=9), B), (S(0, 4), ROW), (S(low=5, high=9), 3)]
DIVISION = [*SHAPES, (S(6, values=[7, -7, 5, -5, 6, -6], dtype="int64"), -3)]
# The squares overflow; a central difference would drown in rounding.
HUGE = S(2, values=[3e200, 5.0], dtype="float64", grad=False)
# torch rounds a bfloat16 quotient before it truncates it, so half types may differ by one.
WIDE = [(S(3, 4, dtype=d, low=-9, high=9), S(4, dtype=d, low=1, high=4)) for d in ("float64", "float32")]


def rounded(a, b, rounding_mode=None):
    q = np.asarray(a) / np.asarray(b)
    if rounding_mode is None:
        return q
    kept = np.floor(q) if rounding_mode == "floor" else np.trunc(q)
    whole = np.result_type(a, b).kind in "iu" and not isinstance(b, float)
    return kept.astype(np.int64) if whole else kept


RECORDS = [
    op(
        "add",
        samples=[*SHAPES, (A, B, {"alpha": 2}), (2, B)],
        reference=lambda a, b, alpha=1: a + alpha * np.asarray(b),
        dtypes="ifc",
        errors=[
            ((S(3, dtype="int64"), S(3, dtype="int64"), {"alpha": 1.5}), RuntimeError),
            ((S(3), S(4)), RuntimeError),
            ((S(3), "x"), TypeError),
        ],
    ),
    op(
        "sub",
        samples=[*SHAPES, (A, ROW, {"alpha": 1}), (9, B)],
        reference=lambda a, b, alpha=1: a - alpha * np.asarray(b),
        dtypes="ifc",
        errors=[((S(3, dtype="bool"), S(3, dtype="bool")), RuntimeError)],
    ),
    op(
        "rsub",
        samples=[(B, A), (ROW, A), (B, 9), (B, 9, {"alpha": 2})],
        reference=lambda a, b, alpha=1: b - alpha * np.asarray(a),
        dtypes="ifc",
        errors=[((1, S(3)), TypeError), ((S(3, dtype="bool"), 1), RuntimeError)],
    ),
    op(
        "mul",
        samples=[*SHAPES, (3, B)],
        reference=lambda a, b: a * np.asarray(b),
        dtypes="ifc",
        errors=[((S(2, 3), S(4)), RuntimeError)],
    ),
    op(
        "div",
        samples=[*SHAPES, (1, B)],
        reference=rounded,
        dtypes="ifc",
        errors=[((S(3), S(3), {"rounding_mode": "up"}), RuntimeError)],
    ),
    op(
        "divide",
        samples=[(*s, {"rounding_mode": m}) for s in [*DIVISION, *WIDE] for m in ("floor", "trunc")],
        reference=rounded,
        dtypes="i",
        # A step function: its derivative is zero, and central differences meet the steps.
        grad=False,
        errors=[((S(3, dtype="int64"), 0, {"rounding_mode": "floor"}), RuntimeError)],
    ),
    op("true_divide", samples=SHAPES, reference=rounded, dtypes="ifc"),
    op(
        "floor_divide",
        samples=[*DIVISION, (9, B)],
        reference=lambda a, b: rounded(a, b, "floor"),
        dtypes="if",
        grad=False,
        errors=[((S(3, dtype="int64"), S(3, values=[1, 0, 2], dtype="int64")), RuntimeError)],
    ),
    op(
        "remainder",
        samples=[
            *DIVISION,
            (9, S(4, dtype="int64", low=1, high=5)),
            (S(5, low=-7, high=7), 2.5),
            (S(5, low=-7, high=7), -2.5),
        ],
        reference=np.remainder,
        dtypes="if",
        errors=[((S(3, dtype="int64"), 0), RuntimeError)],
    ),
    op(
        "fmod",
        samples=[*DIVISION, (S(5, low=-7, high=7), 2.5), (S(5, low=-7, high=7), -2.5)],
        reference=np.fmod,
        dtypes="if",
        errors=[((S(3, dtype="int64"), 0), RuntimeError), ((2, S(3)), TypeError)],
    ),
    op(
        "neg",
        samples=[(S(3, 4),), (S(),), (S(0),), (S(4, dtype="int64", low=-5, high=5),)],
        reference=np.negative,
        dtypes="fc",
        errors=[((S(3, dtype="bool"),), RuntimeError)],
    ),
    op(
        "positive",
        samples=[(S(3, 4),), (S(),)],
        reference=np.positive,
        dtypes="ifc",
        errors=[((S(3, dtype="bool"),), RuntimeError)],
    ),
    op(
        "addcmul",
        samples=[(A, B, B), (A, ROW, B, {"value": 2}), (S(3, 1), S(1, 4), S(3, 4)), (S(), S(), S())],
        reference=lambda x, a, b, value=1: x + value * a * b,
        dtypes="ifc",
        domain=(0.5, 4),
        errors=[((S(3), S(3), S(3), {"value": 1j}), RuntimeError)],
    ),
    op(
        "addcdiv",
        samples=[(A, B, B), (A, ROW, B, {"value": -0.5}), (S(3, 1), S(1, 4), S(3, 4))],
        reference=lambda x, a, b, value=1: x + value * a / b,
        dtypes="fc",
        domain=(0.5, 4),
        errors=[((S(3), S(3, dtype="int64"), S(3, dtype="int64")), RuntimeError)],
    ),
    op(
        "lerp",
        samples=[
            (S(3, 4), S(3, 4), 0.25),
            (S(3, 4), S(4), 0.75),
            (S(3, 4), S(3, 4), S(3, 1, low=0, high=1)),
            (S(), S(), S(low=0, high=1)),
        ],
        reference=lambda a, b, w: a + w * (b - a),
        dtypes="fc",
        errors=[((S(3), S(3, dtype="float32"), 0.5), RuntimeError)],
    ),
    op("hypot", samples=[(S(3, 4), S(3, 4)), (S(3, 4), S(4)), (HUGE, HUGE)], reference=np.hypot, dtypes="f"),
    op(
        "gcd",
        samples=[(S(4, low=0, high=30), S(4, low=0, high=30)), (S(3, 1, low=1, high=9), S(4, low=1, high=9))],
        reference=np.gcd,
        dtypes="i",
        grad=False,
        errors=[((S(3, dtype="float64"), S(3, dtype="float64")), NotImplementedError)],
    ),
    op(
        "lcm",
        samples=[(S(4, low=0, high=12), S(4, low=0, high=12)), (S(3, 1, low=1, high=9), S(4, low=1, high=9))],
        reference=np.lcm,
        dtypes="i",
        grad=False,
    ),
]
