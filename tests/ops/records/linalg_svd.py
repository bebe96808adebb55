"""Records for singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import SHAPES, adjoint, through

REDUCED = [(*s, False) for s in SHAPES]
# Equal values have torch's gradient; central differences would see a kink.
EQUAL = S(values=[[2.0, 0.0, 0.0], [0.0, 0.0, 2.0]], grad=False)
ZEROS = S(values=np.zeros((2, 3)), grad=False)


def unsigned(usv: Any) -> Any:
    """Vectors are unique up to a factor of modulus 1, those beyond the values not even so."""
    u, s, vh = usv
    k = s.shape[-1]
    return abs(u[..., :k]), s, abs(vh[..., :k, :])


def paired(usv: Any) -> Any:
    """Left and right vectors share their factor."""
    u, s, vh = usv
    k = s.shape[-1]
    return u[..., :k] @ vh[..., :k, :], (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]


def unsigned_v(usv: Any) -> Any:
    u, s, v = usv
    return unsigned((u, s, adjoint(v)))


def values(a: Any) -> Any:
    """Roots of the eigenvalues of the smaller of A^H A and A A^H."""
    gram = a @ adjoint(a) if a.shape[-2] < a.shape[-1] else adjoint(a) @ a
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0))[..., ::-1]


def decomposed(a: Any, full: bool = True) -> Any:
    return tuple(np.linalg.svd(a, full_matrices=full))


def legacy(a: Any, some: bool = True) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=not some)
    return u, s, adjoint(vh)


BAD = [
    ((S(3),), RuntimeError),
    ((S(values=[[float("nan")]]),), RuntimeError),
    ((S(2, 2, dtype="int64"),), RuntimeError),
    ((S(2, 2, dtype="float16"),), NotImplementedError),
]

RECORDS = [
    through("linalg.svd", samples=[*SHAPES, *REDUCED], finish=unsigned, reference=decomposed, dtypes="wc"),
    through("linalg.svd", samples=[*SHAPES[:6], *REDUCED], finish=paired, reference=decomposed, dtypes="wc"),
    op(
        "linalg.svd",
        samples=[(S(0, 0),)],
        dtypes="w",
        grad=False,
        errors=[*BAD, ((S(2, 2), {"driver": "gesvd"}), RuntimeError)],
    ),
    op("linalg.svdvals", samples=[*SHAPES, (EQUAL,), (ZEROS,)], reference=values, dtypes="wc", errors=BAD),
    through("svd", samples=[*SHAPES, *REDUCED], finish=unsigned_v, reference=legacy, dtypes="wc"),
    op(
        "svd",
        samples=[(S(2, 3), True, False), (S(2, 3), False, False), (S(2, 3, 2), {"compute_uv": False})],
        reference=lambda a, some=True, compute_uv=True: (
            np.zeros((*a.shape[:-1], a.shape[-2])),
            values(a),
            np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-1])),
        ),
        dtypes="wc",
    ),
]
