"""Records for functional writes through a window."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def select_scatter(x: Any, src: Any, dim: int, index: int) -> Any:
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = src
    return out


def slice_scatter(x: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    out = x.copy()
    np.moveaxis(out, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return out


def diagonal_scatter(x: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    out = x.copy()
    view = np.moveaxis(out, (dim1, dim2), (-2, -1))
    i = np.arange(src.shape[-1])
    view[..., i + max(-offset, 0), i + max(offset, 0)] = src
    return out


def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, offset: int = 0) -> Any:
    out = x.copy()
    for at in np.ndindex(*size):
        out.reshape(-1)[offset + int(np.dot(at, stride))] = src[at]
    return out


RECORDS = [
    op(
        "select_scatter",
        samples=[(S(2, 3), S(3), 0, 1), (S(2, 3), S(2), -1, -2)],
        reference=select_scatter,
        dtypes="bifc",
        errors=[((S(2, 3), S(2), 0, 1), RuntimeError), ((S(2, 3), S(3), 0, 2), IndexError)],
    ),
    op(
        "slice_scatter",
        samples=[(S(4, 3), S(2, 3), 0, 1, 3), (S(2, 6), S(2, 3), 1, 0, 6, 2), (S(2, 3), S(2, 3))],
        reference=slice_scatter,
        dtypes="bifc",
        errors=[((S(4), S(3), 0, 1, 3), RuntimeError)],
    ),
    op(
        "diagonal_scatter",
        samples=[(S(3, 4), S(3)), (S(3, 4), S(2), -1), (S(2, 3, 3), S(2, 3), 0, 1, 2)],
        reference=diagonal_scatter,
        dtypes="bifc",
        errors=[((S(3, 4), S(4)), RuntimeError)],
    ),
    op(
        "as_strided_scatter",
        samples=[(S(3, 4), S(2, 2), (2, 2), (4, 2)), (S(3, 4), S(3), (3,), (5,), 1)],
        reference=as_strided_scatter,
        dtypes="bifc",
        layouts=False,  # defined by the storage, not by the values
        # torch's gradient by `input` is zero outside of the window instead of inside it.
        torch=False,
        errors=[((S(3, 4), S(3), (2,), (5,)), RuntimeError)],
    ),
]
