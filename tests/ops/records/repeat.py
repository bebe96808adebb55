"""Records for the same values several times."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def expand(x: Any, *size: Any) -> Any:
    size = size[0] if isinstance(size[0], tuple) else size
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)])


def repeat_interleave(x: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    return np.repeat(x, repeats, dim)


COUNTS = S(3, dtype="int64", values=[2, 0, 1])

RECORDS = [
    op(
        "Tensor.expand",
        samples=[(S(3, 1), 3, 4), (S(3, 1), (2, -1, 4)), (S(), 2, 2), (S(2, 3), 1, 2, 3), (S(1), 0)],
        reference=expand,
        dtypes="bifc",
        errors=[((S(2), 3), RuntimeError), ((S(2, 3), 3), RuntimeError), ((S(2), -1, 2), RuntimeError)],
    ),
    op(
        "Tensor.expand_as",
        samples=[(S(3, 1), S(2, 3, 4, grad=False)), (S(), S(2, grad=False))],
        reference=lambda x, other: np.broadcast_to(x, other.shape),
        dtypes="bifc",
        errors=[((S(2), S(3)), RuntimeError)],
    ),
    op(
        "broadcast_to",
        samples=[(S(3, 1), (2, 3, 4)), (S(), (2, 2))],
        reference=np.broadcast_to,
        dtypes="bifc",
        errors=[((S(2), (3,)), RuntimeError)],
    ),
    op(
        "broadcast_tensors",
        samples=[(S(3, 1), S(4)), (S(2, 1, 3), S(), S(4, 1)), (S(2),)],
        reference=np.broadcast_arrays,
        dtypes="bifc",
        errors=[((S(2), S(3)), RuntimeError)],
    ),
    op(
        "broadcast_shapes",
        # The results are no tensors; tests/test_spelling.py compares them.
        samples=[((2, 1), (3,))],
        grad=False,
        errors=[(((2,), (3,)), RuntimeError), (((-1,), (3,)), ValueError)],
    ),
    op(
        "Tensor.repeat",
        samples=[(S(2, 3), 2, 1), (S(2, 3), (2, 1, 3)), (S(), 2, 2), (S(2), 1), (S(2), 0)],
        reference=lambda x, *times: np.tile(x, times[0] if isinstance(times[0], tuple) else times),
        dtypes="bifc",
        errors=[((S(2, 3), 2), RuntimeError), ((S(2), -1), RuntimeError)],
    ),
    op(
        "tile",
        samples=[(S(2, 3), (2,)), (S(2, 3), (2, 1, 3)), (S(2, 3), ()), (S(), (2, 2))],
        reference=np.tile,
        dtypes="bifc",
    ),
    op(
        "repeat_interleave",
        samples=[
            (S(2, 3), 2),
            (S(2, 3), 2, 1),
            (S(2, 3), COUNTS, 1),
            (S(3), COUNTS),
            (S(2, 3), 0, 0),
            (S(2, 3), COUNTS, 1, {"output_size": 3}),
        ],
        reference=repeat_interleave,
        dtypes="bifc",
        errors=[
            ((S(2, 3), -1), RuntimeError),
            ((S(2, 3), COUNTS, 0), RuntimeError),
            ((S(2, 3), 2, 2), IndexError),
            ((S(2, 3), COUNTS, 1, {"output_size": 4}), RuntimeError),
        ],
    ),
    op("atleast_1d", samples=[(S(),), (S(2, 3), S()), (S(0),)], reference=np.atleast_1d, dtypes="bifc"),
    op("atleast_2d", samples=[(S(),), (S(3), S(2, 3)), (S(0),)], reference=np.atleast_2d, dtypes="bifc"),
    op("atleast_3d", samples=[(S(),), (S(3), S(2, 3), S(2, 3, 4))], reference=np.atleast_3d, dtypes="bifc"),
]
