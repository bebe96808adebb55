"""Records for views in another shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def squeeze(x: Any, dim: Any = None) -> Any:
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    axes = tuple(d % x.ndim for d in dims if x.shape[d] == 1) if x.ndim else ()
    return np.squeeze(x, axes)


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    joined = int(np.prod(x.shape[start : end + 1]))
    return x.reshape((*x.shape[:start], joined, *x.shape[end + 1 :]))


RECORDS = [
    op(
        "Tensor.view",
        samples=[(S(2, 6), 3, 4), (S(2, 6), (-1, 2)), (S(2, 6), (12,)), (S(), (1, 1)), (S(0, 3), 3, 0)],
        reference=lambda x, *shape: x.reshape(*shape),
        dtypes="bifc",
        layouts=False,  # whether a view exists is what the layout decides; see test_views
        errors=[((S(2, 3), 4, 2), RuntimeError), ((S(2, 3), -1, -1), RuntimeError)],
    ),
    op(
        "Tensor.view_as",
        samples=[(S(2, 6), S(3, 4, grad=False)), (S(), S(1, grad=False))],
        reference=lambda x, other: x.reshape(other.shape),
        dtypes="bifc",
        layouts=False,  # as view
        errors=[((S(2, 3), S(4)), RuntimeError)],
    ),
    op(
        "reshape",
        samples=[(S(2, 6), (3, 4)), (S(2, 6), (-1,)), (S(3), (3, 1)), (S(), (1,)), (S(0, 3), (0,))],
        reference=lambda x, shape: x.reshape(shape),
        dtypes="bifc",
        errors=[((S(2, 3), (4,)), RuntimeError), ((S(2, 3), (-2, 3)), RuntimeError)],
    ),
    op(
        "Tensor.reshape_as",
        samples=[(S(2, 6), S(3, 4, grad=False)), (S(), S(1, grad=False))],
        reference=lambda x, other: x.reshape(other.shape),
        dtypes="bifc",
        errors=[((S(2, 3), S(4)), RuntimeError)],
    ),
    op(
        "transpose",
        samples=[(S(2, 3, 4), 0, 2), (S(3, 3), 0, 1), (S(2, 3), -1, -2), (S(), 0, -1)],
        reference=lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x,
        dtypes="bifc",
        errors=[((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "swapaxes",
        samples=[(S(2, 3, 4), 0, 2), (S(3, 3), 0, 1)],
        reference=np.swapaxes,
        dtypes="bifc",
        errors=[((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "t",
        samples=[(S(2, 3),), (S(4),), (S(),), (S(3, 3),)],
        reference=np.transpose,
        dtypes="bifc",
        errors=[((S(2, 3, 4),), RuntimeError)],
    ),
    op(
        "permute",
        samples=[(S(2, 3, 4), (2, 0, 1)), (S(2, 3), (-1, 0)), (S(), ())],
        reference=np.transpose,
        dtypes="bifc",
        errors=[((S(2, 3), (0,)), RuntimeError), ((S(2, 3), (0, 0)), RuntimeError), ((S(2, 3), (0, 2)), IndexError)],
    ),
    op(
        "movedim",
        samples=[(S(2, 3, 4), 0, -1), (S(2, 3, 4), (0, 1), (2, 0)), (S(), (), ())],
        reference=np.moveaxis,
        dtypes="bifc",
        errors=[
            ((S(2, 3), (0, 1), (0,)), RuntimeError),
            ((S(2, 3), (0, 0), (0, 1)), RuntimeError),
            ((S(2, 3), 0, 2), IndexError),
        ],
    ),
    op(
        "squeeze",
        samples=[(S(1, 3, 1),), (S(1, 3, 1), 0), (S(1, 3, 1), 1), (S(1, 3, 1), (0, -1)), (S(), 0), (S(2, 3),)],
        reference=squeeze,
        dtypes="bifc",
        errors=[((S(1, 3), 2), IndexError), ((S(1, 3), (0, 0)), RuntimeError)],
    ),
    op(
        "unsqueeze",
        samples=[(S(2, 3), 0), (S(2, 3), 1), (S(2, 3), -1), (S(), 0)],
        reference=np.expand_dims,
        dtypes="bifc",
        errors=[((S(2, 3), 3), IndexError)],
    ),
    op(
        "flatten",
        samples=[(S(2, 3, 4),), (S(2, 3, 4), 1), (S(2, 3, 4), 0, 1), (S(2, 3), 1, 1), (S(),)],
        reference=flatten,
        dtypes="bifc",
        errors=[((S(2, 3), 1, 0), RuntimeError), ((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "unflatten",
        samples=[(S(6, 2), 0, (2, 3)), (S(2, 6), -1, (3, -1)), (S(4), 0, (4, 1, 1))],
        reference=lambda x, dim, sizes: x.reshape((*x.shape[: dim % x.ndim], *sizes, *x.shape[dim % x.ndim + 1 :])),
        dtypes="bifc",
        errors=[((S(6), 0, (4, 2)), RuntimeError), ((S(6), 0, ()), RuntimeError)],
    ),
    op("ravel", samples=[(S(2, 3),), (S(),), (S(0, 2),)], reference=np.ravel, dtypes="bifc"),
    op(
        "adjoint",
        samples=[(S(2, 3),), (S(2, 3, 4),), (S(),)],
        reference=lambda x: np.conj(np.swapaxes(x, -2, -1)) if x.ndim else np.conj(x),
        dtypes="bifc",
        errors=[((S(3),), RuntimeError)],
    ),
]
