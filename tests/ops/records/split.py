"""Records for cutting tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def split(x: Any, size: Any, dim: int = 0) -> Any:
    if isinstance(size, (list, tuple)):
        return np.split(x, np.cumsum(size)[:-1], dim)
    return np.split(x, range(size, x.shape[dim], size), dim)


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return split(x, -(-x.shape[dim] // chunks), dim)


def tensor_split(x: Any, given: Any, dim: int = 0) -> Any:
    return np.array_split(x, given.tolist() if isinstance(given, np.ndarray) else given, dim)


RECORDS = [
    op(
        "split",
        samples=[(S(5, 2), 2), (S(2, 6), 3, 1), (S(6), [1, 5]), (S(2, 6), (2, 0, 4), -1)],
        reference=split,
        dtypes="bifc",
        errors=[
            ((S(4), 0), RuntimeError),
            ((S(4), -1), RuntimeError),
            ((S(4), [1, 2]), RuntimeError),
            ((S(), 1), RuntimeError),
            ((S(4), 2, 1), IndexError),
            ((S(4), 1.5), TypeError),
        ],
    ),
    op(
        "Tensor.split",
        samples=[(S(5, 2), 2), (S(5, 2), {"split_size": 3}), (S(6), [1, 5])],
        reference=lambda x, size=None, dim=0, split_size=None: split(x, size or split_size, dim),
        dtypes="bifc",
    ),
    op(
        "split_with_sizes",
        samples=[(S(6), [1, 5]), (S(2, 6), (2, 0, 4), -1)],
        reference=split,
        dtypes="bifc",
        errors=[((S(4), [1, 2]), RuntimeError), ((S(4), [5, -1]), RuntimeError)],
    ),
    op(
        "unsafe_split",
        samples=[(S(5, 2), 2), (S(2, 6), 3, 1)],
        reference=split,
        dtypes="bifc",
        errors=[((S(4), 0), RuntimeError)],
    ),
    op(
        "unsafe_split_with_sizes",
        samples=[(S(6), [1, 5])],
        reference=split,
        dtypes="bifc",
        errors=[((S(4), [1, 2]), RuntimeError)],
    ),
    op(
        "chunk",
        samples=[(S(5, 2), 2), (S(2, 6), 4, 1), (S(3), 5)],
        reference=chunk,
        dtypes="bifc",
        errors=[((S(4), 0), RuntimeError), ((S(), 1), RuntimeError)],
    ),
    op("unsafe_chunk", samples=[(S(5, 2), 2)], reference=chunk, dtypes="bifc", errors=[((S(4), 0), RuntimeError)]),
    op(
        "unbind",
        samples=[(S(3, 2),), (S(2, 3), -1), (S(3),)],
        reference=lambda x, dim=0: [np.take(x, i, dim) for i in range(x.shape[dim])],
        dtypes="bifc",
        errors=[((S(),), IndexError), ((S(3), 1), IndexError)],
    ),
    op(
        "tensor_split",
        samples=[
            (S(5, 2), 3),
            (S(5, 2), (1, 3)),
            (S(2, 7), [2, -1], 1),
            (S(2), 4),
            (S(5), S(2, dtype="int64", values=[1, 3])),
        ],
        reference=tensor_split,
        dtypes="bifc",
        errors=[((S(4), 0), RuntimeError), ((S(), 1), RuntimeError), ((S(4), S(1)), RuntimeError)],
    ),
    op(
        "hsplit",
        samples=[(S(6), 2), (S(2, 6), 3), (S(2, 6), (1, 4))],
        reference=np.hsplit,
        dtypes="bifc",
        errors=[((S(2, 5), 2), RuntimeError), ((S(), 1), RuntimeError)],
    ),
    op(
        "vsplit",
        samples=[(S(6, 2), 3), (S(6, 2), (1, 4))],
        reference=np.vsplit,
        dtypes="bifc",
        errors=[((S(5, 2), 2), RuntimeError), ((S(6), 2), RuntimeError)],
    ),
    op(
        "dsplit",
        samples=[(S(1, 2, 6), 3), (S(1, 2, 6), (1, 4))],
        reference=np.dsplit,
        dtypes="bifc",
        errors=[((S(1, 2, 5), 2), RuntimeError), ((S(2, 6), 2), RuntimeError)],
    ),
]
