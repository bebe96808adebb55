"""Records for pseudo-inverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import adjoint, hermitian, through

POOR = S(values=[[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], grad=False)
ZEROS = S(values=[[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], grad=False)
# With values cut off, the gradient is torch's: that of a matrix of the rank that is left.
CUT = S(3, 3, grad=False)
SHAPES: list[Any] = [
    (S(3, 3),),
    (S(4, 2),),
    (S(2, 4),),
    (S(2, 3, 2),),
    (S(2, 1, 2, 3),),
    (S(0, 0),),
    (S(0, 3),),
    (S(3, 0),),
    (S(0, 3, 2),),
]


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    rtol = rcond if rtol is None else rtol
    if rtol is None:
        rtol = 0.0 if atol else np.finfo(np.float32).eps * max(a.shape[-2:]) * 10
    cut = np.maximum(np.asarray(rtol)[..., None] * s.max(-1, keepdims=True, initial=0), atol or 0.0)
    inverse = np.where(s > cut, 1 / np.where(s > cut, s, 1), 0)
    return (adjoint(vh) * inverse[..., None, :]) @ adjoint(u)


def low_rank(package: Any, a: Any, b: Any) -> tuple[Any, ...]:
    """A product of thin factors: its rank stays when they move a little."""
    return (a @ adjoint(b),)


def least(a: Any, b: Any, rcond: Any = None, *, driver: str = "gelsy") -> tuple[Any, ...]:
    vector = b.ndim == a.ndim - 1
    right = b[..., None] if vector else b
    m, n = a.shape[-2:]
    x = pinv(a, rtol=1e-6 if rcond is None else rcond) @ right
    values = np.linalg.svd(a, compute_uv=False)
    rank = (values > 1e-6 * values.max(-1, keepdims=True, initial=0)).sum(-1)
    none = np.zeros(0)
    left = (np.abs(a @ x - right) ** 2).sum(-2)
    full = driver == "gels" or bool((rank == n).all())
    return (
        x[..., 0] if vector else x,
        left if m > n and full and driver != "gelsy" else none,
        none.astype(np.int64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else none,
    )


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
BAD = [((S(3),), RuntimeError), ((S(2, 2, dtype="int64"),), RuntimeError), ((S(2, 2, dtype="float16"),), RuntimeError)]

RECORDS = [
    op(
        "linalg.pinv",
        samples=[
            *SHAPES,
            (POOR,),
            (ZEROS,),
            (CUT, 0.5),
            (CUT, {"rcond": 0.3}),
            (CUT, {"rtol": 0.5}),
            (CUT, {"atol": 0.7}),
            (CUT, {"atol": 0.2, "rtol": 0.3}),
        ],
        reference=pinv,
        dtypes="wc",
        errors=[*BAD, ((S(2, 3), {"hermitian": True}), RuntimeError)],
    ),
    through(
        "linalg.pinv",
        samples=[(S(4, 2), S(3, 2)), (S(3, 1), S(4, 1)), (S(2, 4, 2), S(2, 4, 2))],
        prepare=low_rank,
        reference=lambda a: pinv(a, rtol=1e-6),
        dtypes="wc",
        # The rank of a product rounded to float32 is a matter of the tolerance.
        tol={"float32": (1e-4, 1e-5), "complex64": (1e-4, 1e-5)},
    ),
    through(
        "linalg.pinv",
        samples=[(S(3, 3), {"hermitian": True}), (S(2, 2, 2), {"hermitian": True}), (S(0, 0), {"hermitian": True})],
        prepare=hermitian,
        reference=pinv,
        dtypes="wc",
    ),
    op(
        "linalg.pinv",
        samples=[
            (S(2, 3, 3), {"rtol": S(2, low=0.1, high=0.6, dtype="float64")}),
            (S(3, 3), {"rtol": S(2, low=0.1, high=0.6, dtype="float64")}),
        ],
        reference=pinv,
        dtypes="wc",
        grad=False,
        layouts=False,
    ),
    op("pinverse", samples=[*SHAPES, (CUT, 0.5)], reference=pinv, dtypes="wc", errors=BAD),
    op(
        "linalg.lstsq",
        samples=[
            *[(S(4, 3), S(4, 2), {"driver": d}) for d in DRIVERS],
            *[(S(2, 3, 4), S(2, 3, 2), {"driver": d}) for d in DRIVERS],
            *[(S(3, 3), S(3, 1), {"driver": d}) for d in DRIVERS],
            (S(4, 2), S(4, 1)),
            (S(4, 2), S(4)),
            (S(4, 2), S(4), {"driver": "gelsd"}),
            (S(2, 4, 2), S(2, 4), {"driver": "gels"}),
            (S(2, 4, 2), S(1, 4, 3), {"driver": "gelss"}),
            (S(1, 4, 2), S(3, 4, 2), {"driver": "gelsd"}),
            (S(0, 4, 2), S(0, 4, 3)),
        ],
        reference=least,
        dtypes="wc",
        out=False,
        # The normal equations of the random samples lose a few digits.
        tol={"float32": (1e-4, 1e-5), "complex64": (1e-4, 1e-5)},
        errors=[
            ((S(4, 3), S(3, 2)), RuntimeError),
            ((S(4, 3), S(2, 4, 2)), RuntimeError),
            ((S(2, 4, 3), S(4)), RuntimeError),
            ((S(4, 3), S(4, 2), {"driver": "qr"}), RuntimeError),
            ((S(4, 3), S(4, 2, dtype="float32")), RuntimeError),
            ((S(values=np.ones((3, 2))), S(3, 1), {"driver": "gels"}), RuntimeError),
            ((S(), S()), RuntimeError),
            ((S(3, 3, dtype="int64"), S(3, 1, dtype="int64")), RuntimeError),
        ],
    ),
    op(
        "linalg.lstsq",
        samples=[
            *[(POOR, S(3, 2), {"driver": d}) for d in DRIVERS[1:]],
            *[(ZEROS, S(3, 2), {"driver": d}) for d in DRIVERS[1:]],
            (S(0, 3), S(0, 2)),
            (S(3, 0), S(3, 2)),
        ],
        reference=least,
        dtypes="wc",
        # Which gradient a missing rank has is a matter of the tolerance.
        grad=False,
        out=False,
    ),
]
