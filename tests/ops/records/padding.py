"""Records for padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

NUMPY = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(x: Any, amounts: Any, mode: str = "constant", value: Any = None) -> Any:
    """NumPy's padding after what negative amounts cut off, except where torch pads first."""
    pairs = [(0, 0)] * x.ndim
    for i in range(len(amounts) // 2):
        pairs[-1 - i] = (amounts[2 * i], amounts[2 * i + 1])
    grown = [(max(a, 0), max(b, 0)) for a, b in pairs]
    cut = [(max(-a, 0), max(-b, 0)) for a, b in pairs]
    first = mode in ("constant", "circular")
    if first:
        x = x[tuple(slice(a, n - b) for (a, b), n in zip(cut, x.shape))]
    options = {"constant_values": value or 0} if mode == "constant" else {}
    x = np.pad(x, grown, mode=NUMPY[mode], **options)
    return x if first else x[tuple(slice(a, n - b) for (a, b), n in zip(cut, x.shape))]


X2, X3, X4, X5 = S(3, 4), S(2, 3, 5), S(2, 3, 4, 5), S(1, 2, 3, 4, 3)

RECORDS = [
    op(
        "nn.functional.pad",
        samples=[
            (X2, (1, 2)),
            (X2, (1, 2, 0, 3), "constant", 1.0),
            (X2, (-1, 2, 1, -2)),
            (X2, ()),
            (S(3), (2, 0)),
            (S(0, 2), (1, 1)),
        ],
        reference=pad,
        dtypes="bifc",
        errors=[
            ((X2, (1, 2, 3)), RuntimeError),
            ((X2, (1, 1, 1, 1, 1, 1)), RuntimeError),
            ((X2, (-3, -2)), RuntimeError),
            ((X2, 1), TypeError),
            ((X2, (1.0, 2.0)), TypeError),
            ((X2, (1, 1), "mirror"), NotImplementedError),
            ((X2, (1, 1), "reflect", 1.0), RuntimeError),
            ((X2, (4, 1), "reflect"), RuntimeError),
            ((X2, (1, 5), "circular"), RuntimeError),
            ((X2, (-2, -2), "replicate"), RuntimeError),
            ((S(3), (1, 1), "reflect"), NotImplementedError),
            ((X4, (1, 1), "reflect"), NotImplementedError),
            ((S(2, 0, 4), (1, 1), "replicate"), RuntimeError),
            ((S(2, 3, dtype="bool"), (1, 1), "reflect"), NotImplementedError),
        ],
    ),
    op(
        "nn.functional.pad",
        samples=[
            (X2, (3, 2), "reflect"),
            (X3, (-1, 4), "reflect"),
            (X4, (1, 2, 3, 0), "reflect"),
            (X3, (1, 0, 2, 2), "reflect"),
            (X5, (1, 2, 0, 3, 2, 1), "reflect"),
            (S(0, 3, 4), (1, 1), "reflect"),
            (X2, (9, 1), "replicate"),
            (X3, (-2, 3), "replicate"),
            (X4, (1, 2, -1, 7), "replicate"),
            (X5, (1, 2, 0, 3, 4, 1), "replicate"),
            (X2, (4, 3), "circular"),
            (X3, (-1, 3), "circular"),
            (X4, (5, 2, -1, 2), "circular"),
            (X5, (1, 2, 0, 3, 3, 1), "circular"),
            (S(2, 0, 4), (1, 1), "circular"),
        ],
        reference=pad,
        dtypes="ifc",
    ),
]
