"""Records for the smallest and the largest."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .reduction import over

NAN = float("nan")
TIES = S(values=[[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], grad=False)
GAP = S(values=[[1.0, NAN, 3.0], [2.0, 2.0, 0.0]], dtype="float64", grad=False)
ONE_DIM: list[Any] = [(S(3, 4), 1), (S(3, 4), -2, True), (S(2, 3, 4), 1), (S(), 0), (TIES, 1), (GAP, 1)]
NO_CHOICE = [((S(0, 3), 0), IndexError), ((S(3), 5), IndexError)]


def with_place(value: Any, place: Any, combine: Any) -> Any:
    """The three forms of torch's max and min."""

    def reference(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, np.ndarray):
            return combine(x, dim)
        if dim is None:
            return value(x)
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        return value(x, axis=dim, keepdims=keepdim), place(x, axis=dim, keepdims=keepdim)

    return reference


def place_of(fn: Any) -> Any:
    return lambda x, dim=None, keepdim=False: fn(x, axis=dim if x.ndim else None, keepdims=keepdim)


RECORDS = [
    *(
        op(
            name,
            samples=[(S(3, 4),), (S(),), (TIES,), *ONE_DIM, (S(3, 4), S(4)), (S(3, 0), 0)],
            reference=with_place(value, place, combine),
            dtypes="bif",
            errors=[*NO_CHOICE, ((S(0),), RuntimeError), ((S(3), 0.5), TypeError)],
        )
        for name, value, place, combine in (
            ("max", np.max, np.argmax, np.maximum),
            ("min", np.min, np.argmin, np.minimum),
        )
    ),
    *(
        op(
            name,
            samples=[
                (S(3, 4),),
                (S(3, 4), 1),
                (S(3, 4), -2, True),
                (S(2, 3, 4), (0, 2)),
                (S(),),
                (S(values=[[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], grad=False), 1),
                (S(3, 0), 0),
            ],
            reference=over(value),
            dtypes="bif",
            errors=[*NO_CHOICE, ((S(0),), RuntimeError), ((S(3, 3), (0, 0)), RuntimeError)],
        )
        for name, value in (("amax", np.max), ("amin", np.min))
    ),
    op(
        "aminmax",
        samples=[(S(3, 4),), (S(3, 4), {"dim": 1}), (S(3, 4), {"dim": 0, "keepdim": True}), (S(),)],
        reference=lambda x, dim=None, keepdim=False: (
            np.min(x, axis=dim, keepdims=keepdim),
            np.max(x, axis=dim, keepdims=keepdim),
        ),
        dtypes="bif",
        errors=[((S(0),), RuntimeError), ((S(0, 3), {"dim": 0}), IndexError)],
    ),
    op(
        "argmax",
        samples=[(S(3, 4),), (TIES,), (S(3, 4), None, True), (S(),), *ONE_DIM],
        reference=place_of(np.argmax),
        dtypes="if",
        grad=False,
        errors=[*NO_CHOICE, ((S(0),), IndexError), ((S(3, dtype="complex64"),), RuntimeError)],
    ),
    op(
        "argmin",
        samples=[(S(3, 4),), (TIES,), (S(3, 4), None, True), (S(),), *ONE_DIM],
        reference=place_of(np.argmin),
        dtypes="if",
        grad=False,
        errors=[*NO_CHOICE, ((S(0),), IndexError), ((S(3, dtype="complex64"),), RuntimeError)],
    ),
]
