"""Records for writing along a dimension at positions an index tensor names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .index import lift

# Each position once, so that overwriting does not depend on the order.
ONCE = S(2, 3, dtype="int64", values=[[0, 1, 2], [1, 2, 0]])
MANY = S(3, 2, dtype="int64", values=[[0, 1], [0, 1], [3, 1]])
SMALL = S(2, 1, dtype="int32", values=[[3], [0]])
NONE = S(0, 2, dtype="int64")
POINT = S(dtype="int64", low=0, high=1)


def walk(step: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """For every index in turn: the element there becomes step(element, element of src)."""

    def reference(x: Any, dim: int, index: Any, src: Any) -> Any:
        out = x.copy()
        for at in np.ndindex(*index.shape):
            target = list(at)
            target[dim] = index[at]
            value = src[at] if isinstance(src, np.ndarray) else src
            out[tuple(target)] = step(out[tuple(target)], value)
        return out

    return lift(reference)


def scatter(x: Any, dim: int, index: Any, src: Any = None, value: Any = None, reduce: Any = None) -> Any:
    steps = {None: lambda a, b: b, "add": lambda a, b: a + b, "multiply": lambda a, b: a * b}
    return walk(steps[reduce])(x, dim, index, src if value is None else value)


def scatter_reduce(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool = True) -> Any:
    out = x.copy()
    groups: dict[Any, list[Any]] = {}
    for at in np.ndindex(*index.shape):
        target = list(at)
        target[dim] = index[at]
        groups.setdefault(tuple(target), []).append(src[at])
    total = {"sum": np.sum, "prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}[how]
    for at, group in groups.items():
        out[at] = total([x[at], *group] if include_self else group)
    return out


RECORDS = [
    op(
        "scatter",
        samples=[
            (S(3, 4), 0, ONCE, S(2, 3)),
            (S(2, 3), 1, ONCE, S(2, 3)),
            (S(3, 4), 0, ONCE, S(3, 4)),
            (S(4, 2), 0, SMALL, 2),
            (S(4, 2), 0, SMALL, {"value": 1.0}),
            (S(4, 2), 0, NONE, S(1, 2)),
            (S(), 0, POINT, S()),
            (S(4, 2), 0, MANY, 2, {"reduce": "add"}),
            (S(4, 2), -2, MANY, 2, {"reduce": "multiply"}),
        ],
        reference=scatter,
        dtypes="fic",
        # torch has no gradient for reduce=, nor for a src larger than its index.
        torch=False,
        errors=[
            ((S(2, 3), 0, ONCE, S(2, 3)), RuntimeError),
            ((S(3, 4), 2, ONCE, S(2, 3)), IndexError),
            ((S(3, 4), 0, ONCE, S(1, 3)), RuntimeError),
            ((S(3, 4), 0, ONCE, S(2, 3, dtype="int64")), RuntimeError),
            ((S(3, 4), 0, ONCE), TypeError),
            ((S(4, 2), 0, MANY, 2, {"reduce": "max"}), RuntimeError),
            ((S(4, 2), 0, MANY, S(3)), RuntimeError),
        ],
    ),
    op(
        "scatter_add",
        samples=[
            (S(4, 2), 0, MANY, S(3, 2)),
            (S(2, 3), 1, ONCE, S(2, 3)),
            (S(4, 2), 0, SMALL, S(2, 1)),
            (S(4, 2), 0, NONE, S(0, 2)),
            (S(), 0, POINT, S()),
        ],
        reference=walk(lambda a, b: a | b if isinstance(a, np.bool_) else a + b),
        dtypes="bifc",
        errors=[
            ((S(2, 2), 0, MANY, S(3, 2)), RuntimeError),
            ((S(4, 2), 0, MANY, S(2, 2)), RuntimeError),
            ((S(4, 2), 0, S(3, 2, dtype="int16", low=0, high=1), S(3, 2)), RuntimeError),
        ],
    ),
    op(
        "scatter_reduce",
        samples=[
            *(
                (S(4, 2), 0, MANY, S(3, 2), how, {"include_self": own})
                for how in ("sum", "prod", "mean", "amax", "amin")
                for own in (True, False)
            ),
            # One zero among the factors.
            (S(4, 2), 0, MANY, S(values=[[0.0, 1.0], [2.0, 0.0], [3.0, 1.0]]), "prod"),
            (S(values=[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [1.0, 1.0]]), 0, MANY, S(3, 2), "prod"),
            # Old values that do not count, but equal the largest of the new ones.
            (
                S(values=[[2.0, 9.0], [1.0, 3.0], [1.0, 1.0], [3.0, 1.0]]),
                0,
                MANY,
                S(values=[[0.0, 1.0], [2.0, 0.0], [3.0, 3.0]]),
                "amax",
                {"include_self": False},
            ),
            (S(4, 2), 0, SMALL, S(3, 2), "amax"),
        ],
        reference=scatter_reduce,
        dtypes="f",
        # A mean of half values is rounded twice: after the sum and after the division.
        tol={"float16": (4e-3, 4e-3), "bfloat16": (3.2e-2, 2e-2)},
        # torch has no gradient for a src larger than its index.
        torch=False,
        errors=[
            ((S(2, 2), 0, MANY, S(3, 2), "sum"), RuntimeError),
            ((S(4, 2), 0, MANY, S(3, 2), "max"), RuntimeError),
            ((S(4, 2), 0, MANY, S(3, 2, dtype="int64"), "sum"), RuntimeError),
        ],
    ),
    op(
        "scatter_reduce",
        # Two zeros in one product: the second derivative is refused.
        samples=[(S(4, 2), 0, MANY, S(values=[[0.0, 0.0], [2.0, 0.0], [3.0, 1.0]]), "prod")],
        reference=scatter_reduce,
        dtypes="f",
        gradgrad=False,
    ),
]
