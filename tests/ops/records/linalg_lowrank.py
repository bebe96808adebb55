"""Records for leading singular vectors by random projection."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.matrices import adjoint, through


def product(usv: Any) -> Any:
    """What the factors make together: with all ranks asked for, no chance is left in it."""
    u, s, v = usv
    return s, (u * s[..., None, :]) @ adjoint(v)


def decomposed(a: Any, q: int, niter: int = 2, M: Any = None) -> Any:
    u, s, vh = np.linalg.svd(a if M is None else a - M, full_matrices=False)
    return u, s, adjoint(vh)


def components(a: Any, q: int, center: bool = True) -> Any:
    return decomposed(a - a.mean(-2, keepdims=True) if center else a, q)


RECORDS = [
    through(
        "svd_lowrank",
        samples=[
            (S(4, 3), 3),
            (S(3, 4), 3),
            (S(2, 4, 2), 2),
            (S(4, 3), {"q": 3, "niter": 0}),
            (S(4, 3), 3, 2, S(1, 3)),
        ],
        finish=product,
        reference=decomposed,
        dtypes="w",
        errors=[((S(3), 1), RuntimeError), ((S(3, 3, dtype="float16"), 1), NotImplementedError)],
    ),
    through(
        "pca_lowrank",
        samples=[(S(5, 3), 3), (S(3, 2), 2, False), (S(2, 5, 2), {"q": 2})],
        finish=product,
        reference=components,
        dtypes="w",
    ),
    op(
        "pca_lowrank",
        samples=[(S(4, 3), 2)],
        dtypes="w",
        random=True,
        errors=[((S(4, 3), 4), ValueError), ((S(4, 3), 2, True, -1), ValueError)],
    ),
]
