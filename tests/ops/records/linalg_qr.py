"""Records for QR factors and Householder reflectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import SHAPES

WIDE: list[Any] = [(S(3, 3),), (S(2, 4),), (S(2, 1, 2, 3),), (S(0, 3),)]
BAD = [
    ((S(3),), RuntimeError),
    ((S(2, 2, dtype="int64"),), RuntimeError),
    ((S(2, 2, dtype="float16"),), NotImplementedError),
]


def factors(a: Any, mode: str = "reduced") -> Any:
    if mode == "r":
        return np.zeros(0), np.linalg.qr(a, mode="r")
    return tuple(np.linalg.qr(a, mode=mode))


def packed(a: Any) -> Any:
    h, tau = np.linalg.qr(a, mode="raw")
    return np.swapaxes(h, -2, -1), tau


def rotation(v: Any, tau: Any) -> Any:
    """The whole product of reflectors, as matrices."""
    m = v.shape[-2]
    q = np.broadcast_to(np.eye(m), (*v.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        w = v[..., i, None].copy()
        w[..., :i, :], w[..., i, :] = 0, 1
        q = q @ (np.eye(m) - tau[..., i, None, None] * w @ w.swapaxes(-2, -1).conj())
    return q


def applied(v: Any, tau: Any, x: Any, left: bool = True, transpose: bool = False) -> Any:
    q = rotation(v, tau)
    q = q.swapaxes(-2, -1).conj() if transpose else q
    return q @ x if left else x @ q


REFLECTORS: list[Any] = [
    (S(3, 3), S(3)),
    (S(4, 2), S(2)),
    (S(4, 3), S(1)),
    (S(2, 3, 3), S(2, 3)),
    (S(3, 3), S(0)),
    (S(0, 0), S(0)),
    (S(0, 3, 2), S(0, 2)),
    (S(2, 1, 4, 3), S(2, 1, 2)),
]
BAD_REFLECTORS = [
    ((S(2, 3), S(2)), RuntimeError),
    ((S(3, 2), S(3)), RuntimeError),
    ((S(3, 2), S(2, dtype="float32")), RuntimeError),
    ((S(3, 2), S(2, 2)), RuntimeError),
    ((S(3), S(3)), RuntimeError),
]

RECORDS = [
    op("linalg.qr", samples=SHAPES, reference=factors, dtypes="wc", errors=BAD),
    op(
        "linalg.qr",
        samples=[(*s, "complete") for s in WIDE],
        reference=factors,
        dtypes="wc",
        errors=[((S(2, 2), "full"), RuntimeError)],
    ),
    op(
        "linalg.qr",
        samples=[*[(*s, "r") for s in SHAPES], (S(4, 2), "complete"), (S(3, 0), {"mode": "complete"})],
        reference=factors,
        dtypes="wc",
        grad=False,
    ),
    op(
        "qr",
        samples=[*SHAPES, *[(*s, False) for s in WIDE]],
        reference=lambda a, some=True: factors(a, "reduced" if some else "complete"),
        dtypes="wc",
        errors=BAD,
    ),
    op("geqrf", samples=SHAPES, reference=packed, dtypes="wc", grad=False),
    op(
        "linalg.householder_product",
        samples=REFLECTORS,
        reference=lambda v, tau: rotation(v, tau)[..., : v.shape[-1]],
        dtypes="wc",
        errors=BAD_REFLECTORS,
    ),
    op(
        "orgqr",
        samples=REFLECTORS,
        reference=lambda v, tau: rotation(v, tau)[..., : v.shape[-1]],
        dtypes="wc",
        errors=BAD_REFLECTORS,
    ),
    op(
        "ormqr",
        samples=[
            (S(3, 3), S(3), S(3, 2)),
            (S(4, 2), S(2), S(4, 3), True, True),
            (S(4, 2), S(2), S(3, 4), False),
            (S(4, 2), S(2), S(3, 4), False, True),
            (S(2, 3, 2), S(2, 2), S(2, 3, 1)),
            (S(2, 3), S(2), S(2, 2)),
            (S(0, 0), S(0), S(0, 2)),
        ],
        reference=applied,
        dtypes="wc",
        errors=[
            ((S(3, 3), S(2), S(3, 2)), RuntimeError),
            ((S(3, 3), S(3), S(2, 2)), RuntimeError),
            ((S(3, 3), S(3), S(3, 2, dtype="float32")), RuntimeError),
            ((S(3, 3), S(3), S(2, 3, 2)), RuntimeError),
        ],
    ),
]
