"""Records for LDL factors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import adjoint, through

SHAPES: list[Any] = [(S(3, 3),), (S(1, 1),), (S(2, 5, 5),), (S(0, 0),), (S(0, 3, 3),)]
# A zero on the diagonal asks for a block of size 2.
BLOCK = S(values=[[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
ZEROS = S(values=[[0.0, 0.0], [0.0, 0.0]])
FACTORS = S(values=[[2.0, 0.0, 0.0], [0.5, 3.0, 0.0], [-1.0, 0.25, -4.0]])
PIVOTS = S(values=[1, 3, 3], dtype="int32")
TWO = S(values=[-2, -2, 3], dtype="int32")
NO_FACTORS = [
    ((S(2, 3),), RuntimeError),
    ((S(3),), RuntimeError),
    ((S(2, 2, dtype="int64"),), RuntimeError),
    ((S(2, 2, dtype="float16"),), NotImplementedError),
]


def symmetric(package: Any, a: Any) -> tuple[Any, ...]:
    return (a + a.swapaxes(-2, -1),)


def hermitian(package: Any, a: Any) -> tuple[Any, ...]:
    return (a + adjoint(a),)


def product(ld: Any, pivots: Any, hermitian: bool) -> Any:
    """The matrix again: `P L D L^T P^T` block by block, from the last."""
    flip = np.conj if hermitian else np.asarray
    n, k = len(ld), 0
    blocks = []
    while k < n:
        size = 1 if pivots[k] > 0 else 2
        blocks.append((k, size, abs(int(pivots[k])) - 1))
        k += size
    a = np.zeros_like(ld)
    for k, size, row in reversed(blocks):
        block, rest = slice(k, k + size), slice(k + size, n)
        d = np.tril(ld[block, block])
        d = d + flip(np.tril(d, -1).T)
        low = ld[rest, block]
        a[rest, rest] += low @ d @ flip(low.T)
        a[rest, block], a[block, rest], a[block, block] = low @ d, d @ flip(low.T), d
        last = k + size - 1
        a[[last, row]] = a[[row, last]]
        a[:, [last, row]] = a[:, [row, last]]
    return a


def solved(ld: Any, pivots: Any, b: Any, *, hermitian: bool = False) -> Any:
    return np.linalg.inv(product(ld, pivots, hermitian)) @ b


RECORDS = [
    *[
        through(name, samples=[*SHAPES, (BLOCK,)], prepare=symmetric, dtypes="wc", grad=False)
        for name in ("linalg.ldl_factor", "linalg.ldl_factor_ex")
    ],
    through(
        "linalg.ldl_factor",
        samples=[(*s, {"hermitian": True}) for s in [*SHAPES, (BLOCK,)]],
        prepare=hermitian,
        dtypes="wc",
        grad=False,
    ),
    op(
        "linalg.ldl_factor",
        samples=[(S(values=[[2.0, 9.0], [1.0, 3.0]]),)],  # the lower triangle is read
        dtypes="wc",
        grad=False,
        errors=[((ZEROS,), RuntimeError), *NO_FACTORS],
    ),
    op(
        "linalg.ldl_factor_ex",
        samples=[(ZEROS,)],
        dtypes="wc",
        grad=False,
        errors=[((ZEROS, {"check_errors": True}), RuntimeError)],
    ),
    op(
        "linalg.ldl_solve",
        samples=[
            (FACTORS, PIVOTS, S(3, 2)),
            (FACTORS, TWO, S(3, 2)),
            (FACTORS, PIVOTS, S(3, 2), {"hermitian": True}),
            (FACTORS, TWO, S(4, 3, 2), {"hermitian": True}),
            (S(0, 0), S(0, dtype="int32"), S(0, 2)),
        ],
        reference=solved,
        dtypes="wc",
        grad=False,
        layouts=False,
        errors=[
            ((FACTORS, S(values=[1.0, 2.0, 3.0]), S(3, 1)), RuntimeError),
            ((FACTORS, S(2, dtype="int32"), S(3, 1)), RuntimeError),
            ((FACTORS, PIVOTS, S(2, 1)), RuntimeError),
        ],
    ),
]
