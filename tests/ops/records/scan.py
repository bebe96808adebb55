"""Records for running results along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

NAN = float("nan")
ALONG: list[Any] = [(S(3, 4), 1), (S(3, 4), -2), (S(2, 3, 4), 1), (S(5), 0), (S(), 0), (S(0, 3), 0)]
HIGHS = S(values=[3.0, 1.0, 3.0, NAN, 5.0, NAN], dtype="float64", grad=False)
LOWS = S(values=[1.0, 3.0, 1.0, NAN, 0.0, NAN], dtype="float64", grad=False)
ERRORS = [((S(3), 5), IndexError)]


def running(fn: Any) -> Any:
    return lambda x, dim, dtype=None: fn(x, axis=dim).reshape(x.shape)


def extremes(better: Any) -> Any:
    """Running extremes by walking along each row; the last of equals wins, and so does NaN."""

    def walk(row: Any) -> Any:
        best, places = 0, []
        for i, v in enumerate(row):
            if np.isnan(v) or (not np.isnan(row[best]) and better(v, row[best])):
                best = i
            places.append(best)
        return np.array(places, np.int64)

    def reference(x: Any, dim: int) -> Any:
        if x.ndim == 0 or x.size == 0:
            return x, np.zeros(x.shape, np.int64)
        places = np.apply_along_axis(walk, dim, x)
        return np.take_along_axis(x, places, dim), places

    return reference


def logcumsumexp(x: Any, dim: int) -> Any:
    return np.log(np.cumsum(np.exp(x), axis=dim)).reshape(x.shape)


def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    extra = {k: v for k, v in (("prepend", prepend), ("append", append)) if v is not None}
    return np.diff(x, n, dim, **extra)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, dim: int = -1) -> Any:
    return np.trapezoid(y, x, dx, dim)


def cumulative_trapezoid(y: Any, x: Any = None, dx: float = 1.0, dim: int = -1) -> Any:
    y = np.moveaxis(y, dim, -1)
    steps = dx if x is None else np.diff(x)
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * steps, -1), -1, dim)


AREAS: list[Any] = [
    (S(3, 4),),
    (S(3, 4), {"dx": 0.5}),
    (S(3, 4), {"dim": 0}),
    (S(3, 4), S(4)),
    (S(3, 4), S(3), {"dim": 0}),
]
AREA_ERRORS = [((S(3, dtype="bool"),), RuntimeError), ((S(),), IndexError), ((S(2, 3), S(2)), RuntimeError)]

RECORDS = [
    op(
        "cumsum",
        samples=[*ALONG, (S(3, 4, dtype="int32"), 1, {"dtype": vt.float64})],
        reference=running(np.cumsum),
        dtypes="bifc",
        errors=ERRORS,
    ),
    op(
        "cumprod",
        samples=[*ALONG, (S(values=[[2.0, 0.0, 3.0, 4.0], [0.0, 0.0, 3.0, 5.0]]), 1)],
        reference=running(np.cumprod),
        dtypes="bifc",
        errors=ERRORS,
    ),
    op("cummax", samples=[*ALONG, (HIGHS, 0)], reference=extremes(lambda a, b: a >= b), dtypes="bif", errors=ERRORS),
    op("cummin", samples=[*ALONG, (LOWS, 0)], reference=extremes(lambda a, b: a <= b), dtypes="bif", errors=ERRORS),
    op(
        "logcumsumexp",
        samples=[*ALONG, (S(values=[[-np.inf, -np.inf, 1.0]], grad=False), 1)],
        reference=logcumsumexp,
        dtypes="fc",
        errors=[*ERRORS, ((S(3, dtype="int64"), 0), NotImplementedError)],
    ),
    op(
        "diff",
        samples=[
            (S(5),),
            (S(5, dtype="int64"),),
            (S(3, 4), 2),
            (S(3, 4), 1, 0),
            (S(3), 5),
            (S(3), 0),
            (S(3, 4), 1, -1, S(3, 1), S(3, 2)),
            (S(3, 4), {"append": S(3, 2)}),
            (S(0),),
        ],
        reference=lambda x, *a, **k: x[:0] if x.ndim == 1 and a == (5,) else diff(x, *a, **k),
        dtypes="fc",
        errors=[((S(),), RuntimeError), ((S(3), -1), RuntimeError), ((S(3), 1, -1, S()), RuntimeError)],
    ),
    op("trapezoid", AREAS, reference=trapezoid, dtypes="fc", errors=AREA_ERRORS),
    op("cumulative_trapezoid", [*AREAS[:4]], reference=cumulative_trapezoid, dtypes="fc", errors=AREA_ERRORS),
]
