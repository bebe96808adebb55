"""Records for norms, condition numbers and ranks of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op
from tests.ops.matrices import regular, through

INF = math.inf
ORDERS = ("fro", "nuc", INF, -INF, 1, -1, 2, -2)
SINGULAR = S(values=[[[1.0, 0.0], [0.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]])
# Equal singular values or sums: the gradient is torch's, central differences would see a kink.
TIES = S(values=[[2.0, 0.0], [0.0, -2.0]], grad=False)
ZEROS = S(values=[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], grad=False)


def norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    if ord is None and dim is None:
        flat = np.linalg.norm(x.reshape(-1))
        return flat.reshape((1,) * x.ndim) if keepdim else flat
    dim = tuple(dim) if isinstance(dim, list) else dim
    return np.linalg.norm(x, ord, dim, keepdim)


def matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return np.linalg.norm(x, ord, tuple(dim), keepdim)


def condition(a: Any, p: Any = None) -> Any:
    return np.linalg.cond(a, p)


def widened(fn: Any) -> Any:
    """The same, with a dtype to compute in, which float64 references need not know."""
    return lambda *args, dtype=None, **kwargs: fn(*args, **kwargs)


def rank(a: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    values = np.linalg.svd(a, compute_uv=False)
    if tol is not None:
        atol, rtol = tol, 0.0
    if rtol is None:
        usual = np.finfo(np.float64).eps * max(a.shape[-2:])
        rtol = np.where(np.asarray(0.0 if atol is None else atol) > 0, 0.0, usual)
    atol = np.asarray(0.0 if atol is None else atol)
    largest = values.max(axis=-1, initial=0)
    return (values > np.maximum(atol, rtol * largest)[..., None]).sum(axis=-1)


RECORDS = [
    op(
        "linalg.matrix_norm",
        samples=[
            *[(S(3, 3), o) for o in ORDERS],
            *[(S(2, 3, 4), o, (-1, 0), True) for o in ORDERS],
            *[(S(2, 3, 4), o, (0, 2)) for o in ORDERS],
            *[(S(0, 2, 3), o) for o in ORDERS],
            (S(2, 3),),
            (S(2, 3), {"ord": "fro", "keepdim": True}),
            *[(TIES, o) for o in ORDERS],
            *[(ZEROS, o) for o in ORDERS if o not in ("nuc", 2, -2)],
        ],
        reference=matrix_norm,
        dtypes="wc",
        errors=[
            ((S(2, 2), 3), RuntimeError),
            ((S(2, 2), "max"), RuntimeError),
            ((S(2, 2), None), TypeError),
            ((S(2, 2), 1j), RuntimeError),
            ((S(2, 2), 1, (0,)), RuntimeError),
            ((S(2, 2), 1, 0), TypeError),
            ((S(2, 2), 1, (0, -2)), RuntimeError),
            ((S(2, 2), 2, (0, 5)), IndexError),
            ((S(3),), RuntimeError),
            ((S(0, 3), -2), IndexError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2, dtype="float16"), 2), RuntimeError),
            ((S(2, 2), 1, {"dtype": vt.complex128}), RuntimeError),
            ((S(2, 2, dtype="float64"), 2, {"dtype": vt.float32}), RuntimeError),
        ],
    ),
    # The sums of half types are taken in float32; of no rows or columns the largest is 0.
    op(
        "linalg.matrix_norm",
        samples=[(S(3, 4), o) for o in ("fro", INF, -INF, 1, -1)],
        reference=matrix_norm,
        dtypes="fc",
    ),
    op(
        "linalg.matrix_norm",
        samples=[(S(0, 3), o) for o in ("fro", "nuc", INF, 1, 2)] + [(S(3, 0), o) for o in ("fro", "nuc", INF, 1, 2)],
        reference=lambda x, ord: np.zeros(()),
        dtypes="wc",
        grad=False,
    ),
    op(
        "linalg.norm",
        samples=[
            (S(3),),
            (S(2, 3, 4),),
            (S(2, 3, 4), {"keepdim": True}),
            (S(),),
            *[(S(4), o) for o in (0.5, 1, 2, 3.5, INF, -INF, -1)],
            *[(S(3, 3), o) for o in ORDERS],
            (S(2, 3), None, 1),
            (S(2, 3), 3, [1], True),
            (S(2, 3, 4), None, (0, 2)),
            (S(2, 3, 4), 1, (2, 0)),
            (S(2, 3, 4), "nuc", (2, 0), True),
            (S(0),),
            (S(0, 3), None, 0),
        ],
        reference=norm,
        dtypes="wc",
        errors=[
            ((S(2, 2, 2), 2), RuntimeError),
            ((S(), 2), RuntimeError),
            ((S(2, 2), None, (0, 1, 0)), RuntimeError),
            ((S(2, 2), None, (0, 0)), RuntimeError),
            ((S(3), "fro"), RuntimeError),
            ((S(2, 2), "fro", 0), RuntimeError),
            ((S(2, 2), 2, 7), IndexError),
            ((S(3, dtype="int64"),), RuntimeError),
            ((S(0), INF), RuntimeError),
        ],
    ),
    op(
        "linalg.norm",
        samples=[
            (S(3, dtype="float32"), {"dtype": vt.float64}),
            (S(2, 2, dtype="float32"), "nuc", {"dtype": vt.float64}),
        ],
        reference=widened(norm),
        dtypes="w",
        # A narrow input differentiated by a step of 1e-6 is lost in its rounding.
        grad=False,
    ),
    through(
        "linalg.cond",
        samples=[(S(3, 3),), (S(2, 3, 3), 2), (S(3, 3), -2), (S(2, 3, 3), "nuc")],
        prepare=regular,
        reference=condition,
        dtypes="wc",
    ),
    # torch overwrites the inverse, and then cannot differentiate its norm.
    through(
        "linalg.cond",
        samples=[(S(2, 2, 2), p) for p in ("fro", 1, -1, INF, -INF)],
        prepare=regular,
        reference=condition,
        dtypes="wc",
        torch=False,
    ),
    op(
        "linalg.cond",
        samples=[(S(2, 3),), (S(3, 2), -2), (SINGULAR, 1), (SINGULAR, "fro"), (S(0, 0),), (S(2, 0, 0), 1)],
        dtypes="w",
        grad=False,
        errors=[
            ((S(2, 2), 3), RuntimeError),
            ((S(2, 2), "max"), RuntimeError),
            ((S(2, 3), 1), RuntimeError),
            ((S(3),), RuntimeError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2, dtype="float16"),), NotImplementedError),
        ],
    ),
    op(
        "linalg.matrix_rank",
        samples=[
            (S(3, 3),),
            (S(2, 3, 4),),
            (S(values=[[1.0, 2.0], [2.0, 4.0]]),),
            (S(3, 3), 1.0),
            (S(3, 3), {"tol": 1.0}),
            (S(3, 3), {"atol": 0.5}),
            (S(3, 3), {"atol": 0.0}),
            (S(3, 3), {"rtol": 0.5}),
            (S(2, 3, 3), {"atol": S(values=[0.0, 1.0], dtype="float64")}),
            (S(2, 3, 3), {"atol": S(values=0.5, dtype="float64"), "rtol": S(2, low=0, high=1, dtype="float64")}),
            (S(0, 3),),
            (S(0, 3, 3),),
        ],
        reference=rank,
        dtypes="wc",
        grad=False,
        layouts=False,
        errors=[
            ((S(3),), RuntimeError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2), {"atol": S(dtype="complex64")}), RuntimeError),
            ((S(2, 3), {"hermitian": True}), RuntimeError),
        ],
    ),
    op(
        "linalg.matrix_rank",
        samples=[(S(values=[[2.0, 1.0], [1.0, -3.0]]), {"hermitian": True})],
        reference=rank,
        dtypes="wc",
        grad=False,
        layouts=False,
    ),
]
