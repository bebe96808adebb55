"""Records for LU factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import Record, S, op
from tests.ops.matrices import regular, through

PIVOTS = S(values=[2, 3, 3], dtype="int32")
ZEROS = S(values=[[0.0, 0.0], [0.0, 0.0]])


def eliminated(a: Any) -> tuple[Any, Any]:
    """Packed factors and row swaps, counted from 1, by the textbook."""
    *batch, m, n = a.shape
    lu = a.reshape(math.prod(batch), m, n).copy()
    k = min(m, n)
    pivots = np.zeros((len(lu), k), np.int32)
    for one, swaps in zip(lu, pivots, strict=True):
        for i in range(k):
            size = np.abs(one[i:, i].real) + np.abs(one[i:, i].imag)
            p = i + int(size.argmax())
            swaps[i] = p + 1
            one[[i, p]] = one[[p, i]]
            if one[i, i] != 0:
                one[i + 1 :, i] /= one[i, i]
            one[i + 1 :, i + 1 :] -= np.outer(one[i + 1 :, i], one[i, i + 1 :])
    return lu.reshape(a.shape), pivots.reshape(*batch, k)


def unpacked(lu: Any, pivots: Any, data: bool = True, swaps: bool = True) -> tuple[Any, Any, Any]:
    m, n = lu.shape[-2:]
    k = min(m, n)
    low, up, swap = np.zeros(0), np.zeros(0), np.zeros(0)
    if data:
        low = np.tril(lu[..., :k], -1) + np.eye(m, k)
        up = np.triu(lu[..., :k, :])
    if swaps:
        swap = np.broadcast_to(np.eye(m), (*lu.shape[:-2], m, m)).copy()
        count = math.prod(lu.shape[:-2])
        pairs = zip(swap.reshape(count, m, m), pivots.reshape(count, k), strict=True)
        for one, rows in pairs:
            for i in reversed(range(k)):
                one[[i, rows[i] - 1]] = one[[rows[i] - 1, i]]
    return swap, low, up


def with_info(a: Any, **options: Any) -> tuple[Any, Any, Any]:
    return (*eliminated(a), np.zeros(a.shape[:-2], np.int32))


def solved(lu: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    p, low, up = unpacked(lu, pivots)
    a = p @ low @ up
    inverse = np.linalg.inv(a.swapaxes(-2, -1).conj() if adjoint else a)
    return inverse @ b if left else b @ inverse


SHAPES: list[Any] = [
    (S(3, 3),),
    (S(2, 4),),
    (S(4, 2),),
    (S(2, 1, 3, 3),),
    (S(2, 3, 5),),
    (S(2, 5, 3),),
    (S(20, 20),),
    (S(18, 24),),
    (S(24, 18),),  # more columns than one panel
    (S(0, 0),),
    (S(0, 3),),
    (S(3, 0),),
    (S(0, 3, 3),),
]
# Elimination without regard to conditioning loses digits in the larger samples.
LOOSE = {"float32": (2e-4, 2e-5), "complex64": (2e-4, 2e-5)}


def factors(name: str, reference: Any, **options: Any) -> Record:
    return op(name, samples=SHAPES, reference=reference, dtypes="wc", tol=LOOSE, out=False, **options)


RECORDS = [
    factors(
        "linalg.lu_factor",
        lambda a: eliminated(a),
        errors=[
            ((ZEROS,), RuntimeError),
            ((S(3),), RuntimeError),
            ((S(2, 2), {"pivot": False}), RuntimeError),
            ((S(2, 2, dtype="int64"),), NotImplementedError),
            ((S(2, 2, dtype="float16"),), NotImplementedError),
        ],
    ),
    factors("linalg.lu_factor_ex", with_info, errors=[((ZEROS, {"check_errors": True}), RuntimeError)]),
    op("linalg.lu_factor_ex", samples=[(ZEROS,), (S(values=[[1.0, 1.0], [1.0, 1.0]]),)], dtypes="wc", grad=False),
    factors("lu", lambda a: eliminated(a)),
    factors("linalg.lu", lambda a: unpacked(*eliminated(a))),
    op(
        "lu_unpack",
        samples=[
            (S(3, 3), PIVOTS),
            (S(3, 5), PIVOTS),
            (S(5, 3), PIVOTS),
            (S(3, 3), PIVOTS, True, False),
            (S(2, 2, 2), S(2, 2, dtype="int32", low=2, high=3)),
            (S(0, 3, 3), S(0, 3, dtype="int32")),
        ],
        reference=unpacked,
        dtypes="wc",
        layouts=False,
        errors=[
            ((S(3, 3), S(3, dtype="int64")), RuntimeError),
            ((S(3, 3), S(values=[0, 1, 1], dtype="int32")), RuntimeError),
            ((S(3, 3), S(values=[1, 2, 4], dtype="int32")), RuntimeError),
        ],
    ),
    # torch fails to differentiate what was left out.
    op("lu_unpack", samples=[(S(3, 3), PIVOTS, False)], reference=unpacked, dtypes="wc", grad=False),
    through(
        "linalg.lu_solve",
        samples=[
            (S(3, 3), PIVOTS, S(3, 2)),
            (S(3, 3), PIVOTS, S(3, 2), {"adjoint": True}),
            (S(3, 3), PIVOTS, S(2, 3), {"left": False}),
            (S(3, 3), PIVOTS, S(2, 3), {"left": False, "adjoint": True}),
            (S(3, 3), PIVOTS, S(4, 3, 2)),
            (S(2, 2, 2), S(2, 2, dtype="int32", low=2, high=3), S(2, 3)),
            (S(3, 3), PIVOTS, S(3, 0)),
        ],
        prepare=regular,
        reference=solved,
        dtypes="wc",
    ),
    op(
        "linalg.lu_solve",
        samples=[(S(values=[[2.0]]), S(values=[1], dtype="int32"), S(1, 1))],
        dtypes="w",
        layouts=False,
        errors=[
            ((S(3, 3), S(3, dtype="int64"), S(3, 1)), RuntimeError),
            ((S(3, 3), PIVOTS, S(3)), RuntimeError),
            ((S(3, 3), S(2, dtype="int32"), S(3, 1)), RuntimeError),
            ((S(3, 3), PIVOTS, S(2, 1)), RuntimeError),
        ],
    ),
    through(
        "lu_solve",
        samples=[(S(3, 2), S(3, 3), PIVOTS), (S(4, 3, 2), S(3, 3), PIVOTS)],
        prepare=lambda package, b, lu, pivots: (b, *regular(package, lu), pivots),
        reference=lambda b, lu, pivots: solved(lu, pivots, b),
        dtypes="wc",
    ),
]
