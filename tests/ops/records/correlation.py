"""Records for covariance and correlation."""

import numpy as np

from tests.ops.catalog import S, op

RECORDS = [
    op(
        "cov",
        samples=[
            (S(3, 5),),
            (S(5),),
            (S(1, 4),),
            (S(3, 5), {"correction": 0}),
            (S(2, 4), {"fweights": S(4, dtype="int64", values=[1, 2, 1, 3])}),
            (S(2, 4), {"aweights": S(4, dtype="float64", values=[0.5, 1, 2, 0.25], grad=False)}),
        ],
        reference=lambda x, correction=1, fweights=None, aweights=None: np.cov(
            x, ddof=correction, fweights=fweights, aweights=aweights
        ),
        dtypes="w",
        errors=[((S(2, 2, 2),), RuntimeError), ((S(2, 3), {"fweights": S(3)}), RuntimeError)],
    ),
    op(
        "corrcoef",
        samples=[(S(3, 5),), (S(2, 4),)],
        reference=np.corrcoef,
        dtypes="w",
        errors=[((S(2, 2, 2),), RuntimeError)],
    ),
]
