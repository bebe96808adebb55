"""Records for size, sign and rounding."""

import numpy as np

from tests.ops.catalog import S, op

X = [(S(3, 4, low=-4, high=4),), (S(low=-4, high=4),), (S(0, 3),)]
WHOLE = tuple(range(-4, 5))
HALVES = tuple(n + 0.5 for n in range(-4, 4))
REAL = [((S(3, dtype="complex128"),), NotImplementedError)]

RECORDS = [
    op("abs", samples=X, reference=np.abs, dtypes="ifc", kinks=(0,)),
    op("absolute", samples=X, reference=np.abs, dtypes="ifc", kinks=(0,)),
    op(
        "sign",
        samples=[*X, (S(3, values=[-0.5, 0.0, 2.0], grad=False),)],
        reference=np.sign,
        dtypes="if",
        kinks=(0,),
        errors=REAL,
    ),
    op(
        "signbit",
        samples=[*X, (S(3, values=[-0.0, 0.0, -1.0]),)],
        reference=np.signbit,
        dtypes="bif",
        grad=False,
        errors=REAL,
    ),
    op("floor", samples=X, reference=np.floor, dtypes="if", kinks=WHOLE, errors=REAL),
    op("ceil", samples=X, reference=np.ceil, dtypes="if", kinks=WHOLE, errors=REAL),
    op("trunc", samples=X, reference=np.trunc, dtypes="if", kinks=WHOLE, errors=REAL),
    op("fix", samples=X, reference=np.trunc, dtypes="if", kinks=WHOLE),
    op("frac", samples=X, reference=lambda x: x - np.trunc(x), dtypes="f", kinks=WHOLE),
    op(
        "round",
        samples=[*X, (S(4, values=[0.5, 1.5, -0.5, 2.5], grad=False),)],
        reference=np.rint,
        dtypes="if",
        kinks=HALVES,
        errors=[*REAL, ((S(3, dtype="int64"), {"decimals": 1}), NotImplementedError)],
    ),
    op(
        "special.round",
        samples=[(S(3, 4, low=-90, high=90), {"decimals": d}) for d in (0, 1, 2, -1)],
        reference=lambda x, decimals: np.round(x, decimals),
        # Half types hold too few digits for a decimal rounding to be the same number in float64.
        torch_dtypes="f",
        dtypes="f",
        tol={"float16": (1e-2, 0.11), "bfloat16": (2e-2, 1.0)},
        grad=False,
    ),
    op(
        "abs_",
        samples=X,
        reference=np.abs,
        dtypes="if",
        grad=False,
        errors=[((S(3, dtype="complex128"),), RuntimeError)],
    ),
]
