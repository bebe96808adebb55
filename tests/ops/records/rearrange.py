"""Records for moving elements and padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def pad(x: Any, widths: Any, value: Any = 0) -> Any:
    pairs = [(0, 0)] * x.ndim
    for i in range(len(widths) // 2):
        pairs[x.ndim - 1 - i] = widths[2 * i], widths[2 * i + 1]
    grown = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], constant_values=value)
    cut = [slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, grown.shape, strict=True)]
    return grown[tuple(cut)]


RECORDS = [
    op(
        "flip",
        samples=[(S(2, 3), (0,)), (S(2, 3), (0, -1)), (S(2, 3), ()), (S(), (0,)), (S(0, 3), (1,))],
        reference=lambda x, dims: np.flip(x, dims) if x.ndim else x,
        dtypes="bifc",
        errors=[((S(2), (1,)), IndexError), ((S(2), (0, 0)), RuntimeError)],
    ),
    op(
        "fliplr",
        samples=[(S(2, 3),), (S(2, 3, 2),)],
        reference=np.fliplr,
        dtypes="bifc",
        errors=[((S(2),), RuntimeError)],
    ),
    op("flipud", samples=[(S(2, 3),), (S(3),)], reference=np.flipud, dtypes="bifc", errors=[((S(),), RuntimeError)]),
    op(
        "rot90",
        samples=[(S(2, 3),), (S(2, 3), 2), (S(2, 3), -1), (S(2, 3), 4), (S(2, 3, 4), 1, (1, 2)), (S(2, 3), 1, (1, 0))],
        reference=np.rot90,
        dtypes="bifc",
        errors=[
            ((S(2),), RuntimeError),
            ((S(2, 3), 1, (0, 0)), RuntimeError),
            ((S(2, 3), 1, (0,)), RuntimeError),
            ((S(2, 3), 1, (0, 2)), IndexError),
        ],
    ),
    op(
        "roll",
        samples=[(S(2, 3), 1), (S(2, 3), 4, 1), (S(2, 3), (1, -2), (0, 1)), (S(2, 3), (1, 2), (0, 0)), (S(), 1)],
        reference=lambda x, shifts, dims=None: np.roll(x, shifts, dims),
        dtypes="bifc",
        errors=[((S(2, 3), (1, 2)), RuntimeError), ((S(2, 3), 1, 2), IndexError), ((S(2, 3), (), (0,)), RuntimeError)],
    ),
    op(
        "constant_pad_nd",
        samples=[(S(2, 3), (1, 2)), (S(2, 3), (1, 2, 0, 1), 2), (S(2, 3), (-1, 1)), (S(2, 3), (-1, -2)), (S(2, 3), ())],
        reference=pad,
        dtypes="ifc",
        errors=[((S(2), (1,)), RuntimeError), ((S(2), (1, 1, 1, 1)), RuntimeError), ((S(2), (-2, -1)), RuntimeError)],
    ),
]
