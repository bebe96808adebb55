"""Records for sums, products and tests over dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

NAN = float("nan")
DIMS: list[Any] = [
    (S(3, 4),),
    (S(3, 4), 1),
    (S(3, 4), -2, True),
    (S(2, 3, 4), (0, 2)),
    (S(2, 3, 4), (-1, 0), {"keepdim": True}),
    (S(),),
    (S(), 0),
    (S(0, 3), 0),
    (S(2, 0, 3), (0, 2)),
]
HOLES: list[Any] = [
    (S(values=[[1.0, NAN, -2.0], [NAN, 0.5, 3.0]]),),
    (S(values=[[1.0, NAN, -2.0], [NAN, 0.5, 3.0]]), 0),
    (S(values=[[1.0, NAN, -2.0], [NAN, 0.5, 3.0]]), 1, True),
    (S(3, 2), (0, 1)),
]


def axis(dim: Any) -> Any:
    return dim if dim is None or isinstance(dim, int) else tuple(dim)


def over(fn: Any) -> Any:
    """A NumPy reduction with torch's argument names; 0-d arrays have a dimension 0 there."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        return fn(x, axis=axis(dim) if x.ndim else None, keepdims=keepdim)

    return reference


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return np.log(np.sum(np.exp(1.0 * x), axis=axis(dim) if x.ndim else None, keepdims=keepdim))


RECORDS = [
    op(
        "sum",
        samples=[*DIMS, (S(3, 4, dtype="int32"), {"dtype": vt.float64}), (S(3, 4), ())],
        reference=lambda x, dim=None, keepdim=False, dtype=None: over(np.sum)(x, None if dim == () else dim, keepdim),
        dtypes="bifc",
        errors=[((S(3), 5), IndexError), ((S(3, 3), (0, 0)), RuntimeError), ((S(3), 0.5), TypeError)],
    ),
    op(
        "nansum",
        samples=[*HOLES, *DIMS],
        reference=over(np.nansum),
        dtypes="f",
        errors=[((S(3), 5), IndexError), ((S(3, dtype="complex64"),), RuntimeError)],
    ),
    op(
        "mean",
        samples=[*DIMS[:7], (S(3, 4, dtype="int64"), {"dtype": vt.float64})],
        reference=lambda x, dim=None, keepdim=False, dtype=None: over(np.mean)(x, dim, keepdim),
        dtypes="fc",
        errors=[((S(3, dtype="int64"),), RuntimeError), ((S(3), {"dtype": vt.int32}), RuntimeError)],
    ),
    op(
        "nanmean",
        samples=[*HOLES, *DIMS[:5]],
        reference=over(np.nanmean),
        dtypes="f",
        errors=[((S(3, dtype="int64"),), RuntimeError)],
    ),
    op(
        "prod",
        samples=[
            (S(2, 3),),
            (S(2, 3), 1),
            (S(2, 3), -2, True),
            (S(),),
            (S(), 0),
            (S(0, 3), 0),
            (S(0),),
            (S(values=[[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), 1),
            (S(values=[2.0, 0.0, 3.0]),),
        ],
        reference=over(np.prod),
        dtypes="bifc",
        errors=[((S(3), 5), IndexError), ((S(3, 3), (0, 1)), TypeError)],
    ),
    op(
        "logsumexp",
        samples=[
            (S(3, 4), 1),
            (S(3, 4), -2, True),
            (S(2, 3, 4), (0, 2)),
            (S(), 0),
            (S(0, 3), 0),
            (S(values=[[-np.inf, -np.inf], [-np.inf, 1.0]], dtype="float64", grad=False), 1),
        ],
        reference=logsumexp,
        dtypes="bifc",
        errors=[((S(3), 5), IndexError)],
    ),
    op(
        "all",
        samples=[*DIMS, (S(values=[[1, 0], [1, 1]]), 1)],
        reference=over(np.all),
        dtypes="bifc",
        grad=False,
        errors=[((S(3), 5), IndexError)],
    ),
    op(
        "any",
        samples=[*DIMS, (S(values=[[1, 0], [0, 0]]), 1)],
        reference=over(np.any),
        dtypes="bifc",
        grad=False,
        errors=[((S(3), 5), IndexError)],
    ),
    op(
        "count_nonzero",
        samples=[(S(3, 4),), (S(3, 4), 1), (S(2, 3, 4), (0, 2)), (S(values=[0, 1, 2]),), (S(),)],
        reference=lambda x, dim=None: np.sum(x != 0, axis=axis(dim)),
        dtypes="bifc",
        grad=False,
        errors=[((S(3), 5), IndexError)],
    ),
    op(
        "Tensor.sum_to_size",
        samples=[(S(3, 4), 1, 4), (S(3, 4), (3, 1)), (S(2, 3, 4), 3, 1), (S(3), ())],
        dtypes="ifc",
        errors=[((S(3, 4), 2, 4), RuntimeError), ((S(3), 1, 3), RuntimeError)],
    ),
]
