"""Records for reading and writing along a dimension by an index tensor.

References walk over single elements: slow, and independent of how the kernels find their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ROWS = S(3, dtype="int64", values=[2, 0, 2])
ONCE = S(3, dtype="int64", values=[3, 0, 2])
NARROW = S(3, dtype="int32", values=[2, 0, 2])
NONE = S(0, dtype="int64")
GRID = S(2, 3, dtype="int64", low=0, high=4)


def lift(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Let a reference for arrays with dimensions serve 0-d input as well."""

    def reference(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim:
            return fn(x, *args, **kwargs)
        grown = [a.reshape(1) if isinstance(a, np.ndarray) and a.ndim == 0 else a for a in args]
        return np.asarray(fn(x.reshape(1), *grown, **kwargs)).reshape(())

    return reference


def gather(x: Any, dim: int, index: Any) -> Any:
    out = np.zeros(index.shape, x.dtype)
    for at in np.ndindex(*index.shape):
        source = list(at)
        source[dim] = index[at]
        out[at] = x[tuple(source)]
    return out


def take_along_dim(x: Any, index: Any, dim: int | None = None) -> Any:
    return np.take_along_axis(x, index, dim) if dim is not None else x.ravel()[index.ravel()]


def by_slices(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """For each index in turn: the slice there becomes step(slice, slice of source)."""

    def reference(x: Any, dim: int, index: Any, source: Any, *rest: Any, **options: Any) -> Any:
        out = np.moveaxis(x.copy(), dim, 0)
        rows = np.moveaxis(source, dim, 0) if np.ndim(source) else None
        for k, i in enumerate(index.reshape(-1)):
            out[i] = step(out[i], source if rows is None else rows[k], *rest, **options)
        return np.moveaxis(out, 0, dim)

    return lift(reference)


def index_reduce(x: Any, dim: int, index: Any, source: Any, how: str, include_self: bool = True) -> Any:
    out = np.moveaxis(x.copy(), dim, 0)
    rows = np.moveaxis(source, dim, 0)
    for i in set(index.tolist()):
        group = [rows[k] for k in np.flatnonzero(index == i)]
        group = [out[i], *group] if include_self else group
        total = {"prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}[how]
        out[i] = total(np.stack(group), axis=0)
    return np.moveaxis(out, 0, dim)


def put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    out = x.copy().reshape(-1)
    for i, value in zip(index.reshape(-1), source.reshape(-1), strict=True):
        out[i] = out[i] + value if accumulate else value
    return out.reshape(x.shape)


RECORDS = [
    op(
        "gather",
        samples=[
            (S(4, 3), 0, GRID),
            (S(2, 5), 1, GRID),
            (S(4, 4, 2), -3, S(2, 3, 2, dtype="int64", low=0, high=4)),
            (S(4, 3), 0, S(2, 3, dtype="int32", low=0, high=4)),
            (S(4, 3), 0, S(0, 3, dtype="int64")),
            (S(), 0, S(dtype="int64", low=0, high=1)),
        ],
        reference=lift(gather),
        dtypes="bifc",
        errors=[
            ((S(4, 3), 2, GRID), IndexError),
            ((S(2, 3), 0, S(2, 3, dtype="int64", low=5, high=6)), RuntimeError),
            ((S(2, 3), 0, S(2, 3, dtype="int64", low=-1, high=0)), RuntimeError),
            ((S(2, 3), 0, S(2, dtype="int64", low=0, high=1)), RuntimeError),
            ((S(2, 3), 0, S(2, 3, dtype="int16", low=0, high=1)), RuntimeError),
            ((S(2, 3), 1, S(3, 3, dtype="int64", low=0, high=1)), RuntimeError),
        ],
    ),
    op(
        "take_along_dim",
        samples=[
            (S(4, 3), S(2, 3, dtype="int64", low=-4, high=4), 0),
            (S(2, 5), S(1, 3, dtype="int64", low=0, high=4), 1),
            (S(1, 5), S(2, 3, dtype="int64", low=0, high=4), 1),
            (S(2, 5), S(2, 3, dtype="int64", low=0, high=10)),
        ],
        reference=take_along_dim,
        dtypes="bifc",
        errors=[
            ((S(2, 3), S(3, dtype="int64", low=0, high=1), 0), RuntimeError),
            ((S(2, 3), S(2, 3, dtype="int32", low=0, high=1), 0), RuntimeError),
            ((S(2, 3), S(1, 3, dtype="int64", low=0, high=1), 2), IndexError),
        ],
    ),
    op(
        "index_select",
        samples=[
            (S(4, 3), 0, ROWS),
            (S(2, 3, 2), 1, ROWS),
            (S(2, 4), -1, NARROW),
            (S(4, 3), 0, NONE),
            (S(0, 4), 1, ROWS),
            (S(), 0, S(dtype="int64", low=0, high=1)),
            (S(4), 0, S(dtype="int64", low=0, high=4)),
        ],
        reference=lift(lambda x, dim, index: np.take(x, index.reshape(-1), axis=dim)),
        dtypes="bifc",
        errors=[
            ((S(2, 3), 0, ROWS), IndexError),
            ((S(3), 0, S(1, dtype="int64", values=[-1])), IndexError),
            ((S(4, 3), 0, GRID), IndexError),
            ((S(4, 3), 0, S(3, dtype="uint8", low=0, high=1)), RuntimeError),
            ((S(), 0, S(2, dtype="int64", low=0, high=1)), RuntimeError),
            ((S(4), 1, ROWS), IndexError),
        ],
    ),
    op(
        "index_add",
        samples=[
            (S(4, 2), 0, ROWS, S(3, 2)),
            (S(2, 4, 2), -2, ROWS, S(2, 3, 2)),
            (S(4, 2), 0, ROWS, S(3, 2), {"alpha": 2}),
            (S(4), 0, NARROW, S(3)),
            (S(4, 2), 0, NONE, S(0, 2)),
            (S(), 0, S(dtype="int64", low=0, high=1), S()),
        ],
        # The sum of booleans is their disjunction.
        reference=by_slices(lambda a, b, alpha=1: a | b if a.dtype == bool else a + alpha * b),
        dtypes="bifc",
        errors=[
            ((S(2, 2), 0, ROWS, S(3, 2)), RuntimeError),
            ((S(4, 2), 0, ROWS, S(2, 2)), RuntimeError),
            ((S(4, 2), 0, ROWS, S(3, 3)), RuntimeError),
            ((S(4, 2), 0, GRID, S(3, 2)), IndexError),
            ((S(4, 2), 0, ROWS, S(3, 2, dtype="int64")), RuntimeError),
        ],
    ),
    op(
        "index_copy",
        samples=[
            (S(4, 2), 0, ONCE, S(3, 2)),
            (S(2, 4, 2), 1, ONCE, S(2, 3, 2)),
            (S(4, 2), 0, NONE, S(0, 2)),
            (S(4), 0, S(dtype="int64", low=0, high=4), S(1)),
            (S(), 0, S(1, dtype="int64", low=0, high=1), S(1)),
        ],
        reference=by_slices(lambda a, b: b),
        dtypes="bifc",
        errors=[
            ((S(2, 2), 0, ROWS, S(3, 2)), IndexError),
            ((S(4, 2), 0, ROWS, S(2, 2)), IndexError),
            ((S(4, 2), 0, ROWS, S(3, 3)), RuntimeError),
            ((S(4, 2), 0, NARROW, S(3, 2)), RuntimeError),
            ((S(4, 2), 0, ROWS, S(3, 2, dtype="int64")), RuntimeError),
            ((S(4, 2), 0, ROWS, S(3)), IndexError),
        ],
    ),
    op(
        "index_fill",
        samples=[
            (S(4, 2), 0, ROWS, 1),
            (S(2, 4, 2), 1, S(2, dtype="int64", values=[-1, 0]), 1),
            (S(4), 0, NONE, 1),
            (S(), 0, S(dtype="int64", low=0, high=1), 1),
            (S(4), 0, ROWS, S()),
        ],
        reference=by_slices(lambda a, b: b),
        dtypes="bifc",
        errors=[
            ((S(2, 2), 0, ROWS, 1), IndexError),
            ((S(4, 2), 0, NARROW, 1), IndexError),
            ((S(4, 2), 0, GRID, 1), RuntimeError),
            ((S(4, 2), 0, ROWS, S(1)), RuntimeError),
            ((S(4, 2), 0, ROWS, 1j), RuntimeError),
        ],
    ),
    op(
        "index_reduce",
        samples=[
            (S(4, 2), 0, ROWS, S(3, 2), how, {"include_self": own})
            for how in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
        reference=index_reduce,
        dtypes="f",
        # A mean of half values is rounded twice: after the sum and after the division.
        tol={"float16": (4e-3, 4e-3), "bfloat16": (3.2e-2, 2e-2)},
        errors=[
            ((S(2, 2), 0, ROWS, S(3, 2), "prod"), IndexError),
            ((S(4, 2), 0, ROWS, S(3, 2), "sum"), RuntimeError),
            ((S(4, 2), 0, ROWS, S(2, 2), "prod"), RuntimeError),
        ],
    ),
    op(
        "take",
        samples=[
            (S(3, 4), S(2, 2, dtype="int64", low=-12, high=12)),
            (S(), S(2, dtype="int64", low=0, high=1)),
            (S(3), S(0, dtype="int64")),
            (S(0), S(0, dtype="int64")),
        ],
        reference=lambda x, index: x.reshape(-1)[index],
        dtypes="bifc",
        errors=[
            ((S(2), ROWS), IndexError),
            ((S(2), S(1, dtype="int64", values=[-3])), IndexError),
            ((S(0), ROWS), IndexError),
            ((S(4), NARROW), RuntimeError),
        ],
    ),
    op(
        "put",
        samples=[
            (S(3, 4), ONCE, S(3)),
            (S(3, 4), ROWS, S(3, 1), True),
            (S(3, 4), S(1, dtype="int64", values=[-1]), S()),
            (S(), S(dtype="int64", low=0, high=1), S()),
            (S(3), NONE, S(0)),
        ],
        reference=lambda x, index, source, accumulate=False: put(x, index, source, accumulate),
        dtypes="fic",
        errors=[
            ((S(2), ROWS, S(3)), IndexError),
            ((S(4), ROWS, S(2)), IndexError),
            ((S(4), ROWS, S(3, dtype="int64")), RuntimeError),
            ((S(4), NARROW, S(3)), RuntimeError),
        ],
    ),
]
