"""Records for eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import hermitian, through

SHAPES: list[Any] = [(S(3, 3),), (S(1, 1),), (S(2, 3, 3),), (S(2, 1, 2, 2),), (S(0, 0),), (S(2, 0, 0),), (S(0, 3, 3),)]
BOTH = [*SHAPES, (S(3, 3), "U"), (S(2, 3, 3), {"UPLO": "u"})]
# Equal values have torch's gradient; central differences would see a kink.
EQUAL = S(values=[[2.0, 0.0], [0.0, 2.0]], grad=False)
NAN = S(values=[[float("nan")]])
BAD = [((S(2, 3),), RuntimeError), ((S(3),), RuntimeError)]


def unsigned(pair: Any) -> Any:
    """Vectors are unique up to a factor of modulus 1."""
    values, vectors = pair
    return values, abs(vectors)


def complexes(a: Any) -> Any:
    values, vectors = np.linalg.eig(a)
    return values.astype(complex), vectors.astype(complex)


def rebuilt(pair: Any) -> Any:
    """The matrix again; torch and votive make complex numbers of it."""
    values, vectors = pair
    return (vectors * values[..., None, :]) @ vectors.swapaxes(-2, -1).conj()


RECORDS = [
    through(
        "linalg.eigh",
        samples=BOTH,
        prepare=hermitian,
        finish=unsigned,
        reference=lambda a, UPLO="L": tuple(np.linalg.eigh(a)),
        dtypes="wc",
    ),
    through(
        "linalg.eigh",
        samples=BOTH,
        prepare=hermitian,
        finish=rebuilt,
        reference=lambda a, UPLO="L": tuple(np.linalg.eigh(a)),
        dtypes="wc",
    ),
    op(
        "linalg.eigh",
        samples=[(S(0, 0),)],
        dtypes="w",
        grad=False,
        errors=[
            *BAD,
            ((S(2, 2), "X"), RuntimeError),
            ((S(2, 2, dtype="int64"),), NotImplementedError),
            ((S(2, 2, dtype="float16"),), NotImplementedError),
        ],
    ),
    through(
        "linalg.eigvalsh",
        samples=[*BOTH, (EQUAL,)],
        prepare=hermitian,
        reference=lambda a, UPLO="L": np.linalg.eigvalsh(a),
        dtypes="wc",
    ),
    op(
        "linalg.eigvalsh",
        # Only one triangle is read.
        samples=[(S(values=[[1.0, 99.0], [2.0, 3.0]]),), (S(values=[[1.0, 2.0], [99.0, 3.0]]), "U"), (NAN,)],
        reference=lambda a, UPLO="L": np.linalg.eigvalsh(a, UPLO),
        dtypes="wc",
        grad=False,
        layouts=False,
        errors=BAD,
    ),
    through("linalg.eig", samples=SHAPES, finish=unsigned, reference=complexes, dtypes="wc"),
    op(
        "linalg.eig",
        samples=[(S(0, 0),)],
        dtypes="w",
        grad=False,
        errors=[
            *BAD,
            ((NAN,), RuntimeError),
            ((S(2, 2, dtype="int64"),), RuntimeError),
            ((S(2, 2, dtype="float16"),), NotImplementedError),
        ],
    ),
    op("linalg.eigvals", samples=SHAPES, reference=lambda a: complexes(a)[0], dtypes="wc", errors=BAD),
    op("linalg.eigvals", samples=[(NAN,), (EQUAL,)], dtypes="w", grad=False),
]
