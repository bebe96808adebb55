"""Records for variance, median, mode and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

NAN = float("nan")
SPREAD: list[Any] = [
    (S(3, 4),),
    (S(3, 4), 1),
    (S(3, 4), (0, 1)),
    (S(3, 4), False),
    (S(3, 4), -1, False, True),
    (S(3, 4), {"dim": 0, "correction": 2, "keepdim": True}),
    (S(3, 4), {"correction": 0}),
]
ROWS: list[Any] = [(S(3, 4), 1), (S(3, 5), -2, True), (S(2, 3, 4), 0), (S(), 0)]
HOLES = S(values=[[1.0, NAN, 3.0, 0.0], [5.0, 2.0, 4.0, NAN]], grad=False)
GAPS = S(values=HOLES.values, dtype="float64", grad=False)
PICK_ERRORS = [((S(0, 3), 0), IndexError), ((S(3), 5), IndexError)]


def spread(fn: Any, with_mean: bool = False) -> Any:
    def reference(
        x: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        ddof = correction if correction is not None else int(unbiased is None or unbiased)
        found = fn(x, axis=dim, ddof=ddof, keepdims=keepdim)
        return (found, np.mean(x, axis=dim, keepdims=keepdim)) if with_mean else found

    return reference


def chosen(of_row: Any) -> Any:
    """A reference that picks one element of each row by a rule that gives its index."""

    def reference(x: Any, dim: Any = -1, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        place = np.expand_dims(np.apply_along_axis(of_row, dim, x), dim)
        value = np.take_along_axis(x, place, dim)
        return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))

    return reference


def median_of(row: Any) -> int:
    nan = np.flatnonzero(np.isnan(row))
    return int(nan[0]) if len(nan) else int(np.argsort(row, kind="stable")[(len(row) - 1) // 2])


def nanmedian_of(row: Any) -> int:
    known = np.flatnonzero(~np.isnan(row))
    return int(known[median_of(row[known])])


def mode_of(row: Any) -> int:
    values, counts = np.unique(row, return_counts=True)
    return int(np.flatnonzero(row == values[np.argmax(counts)])[-1])


def of_all(place: Any) -> Any:
    along = chosen(place)
    return lambda x, *rest: along(x, *rest) if rest else x.reshape(-1)[place(x.reshape(-1))]


def quantile(fn: Any) -> Any:
    def reference(x: Any, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
        return fn(x, q, axis=dim, keepdims=keepdim, method=interpolation)

    return reference


def D(*shape: int, **options: Any) -> S:
    """A float64 tensor: quantiles are defined for no narrower type than float32."""
    return S(*shape, dtype="float64", **options)


QUANTILES: list[Any] = [
    (D(3, 4), 0.3),
    (D(3, 5), 0.7, 1),
    (D(3, 5), 0.25, 0, True),
    (D(), 0.4),
    (D(3, 4), D(values=[0.1, 0.5, 0.9]), 1),
    (D(3, 4), D(values=[0.0, 1.0], grad=False), {"keepdim": True}),
    *((D(3, 6), 0.37, -1, {"interpolation": how}) for how in ("lower", "higher", "midpoint", "nearest")),
]
QUANTILE_ERRORS = [
    ((S(3, dtype="int64"), 0.5), RuntimeError),
    ((D(3), 1.5), RuntimeError),
    ((D(3), D(values=[[0.5]])), RuntimeError),
    ((D(0), 0.5), RuntimeError),
    ((D(3), 0.5, {"interpolation": "none"}), RuntimeError),
    ((D(3), 0.5, 5), IndexError),
]

RECORDS = [
    op(
        "var",
        samples=[*SPREAD, (S(values=[[1.0, 1.0]], grad=False), 1)],
        reference=spread(np.var),
        dtypes="fc",
        errors=[
            ((S(3, dtype="int64"),), RuntimeError),
            ((S(3), 5), IndexError),
            ((S(3), {"unbiased": True, "correction": 1}), TypeError),
        ],
    ),
    op(
        "std",
        samples=[*SPREAD, (S(values=[[1.0, 1.0]], grad=False), 1)],
        reference=spread(np.std),
        dtypes="fc",
        errors=[((S(3, dtype="int64"),), RuntimeError), ((S(3), 5), IndexError)],
    ),
    op("var_mean", samples=SPREAD, reference=spread(np.var, True), dtypes="fc"),
    op("std_mean", samples=SPREAD, reference=spread(np.std, True), dtypes="fc"),
    op(
        "median",
        samples=[(S(3, 4),), (S(5),), *ROWS, (HOLES, 1), (HOLES,)],
        reference=of_all(median_of),
        dtypes="f",
        errors=[*PICK_ERRORS, ((S(3, dtype="bool"),), NotImplementedError)],
    ),
    op(
        "nanmedian",
        samples=[(S(3, 4),), (S(5),), *ROWS, (HOLES, 1), (HOLES,)],
        reference=of_all(nanmedian_of),
        dtypes="f",
        errors=PICK_ERRORS,
    ),
    op(
        "mode",
        samples=[
            (S(3, 4),),
            *ROWS,
            (S(values=[2.0, 1.0, 2.0, 1.0, 3.0], grad=False),),
            (S(3, 9, dtype="int64", low=0, high=4), 1),
        ],
        reference=chosen(mode_of),
        dtypes="f",
        errors=PICK_ERRORS,
    ),
    op(
        "quantile",
        samples=[*QUANTILES, (GAPS, 0.5, 1)],
        reference=quantile(np.quantile),
        dtypes="f",
        errors=QUANTILE_ERRORS,
    ),
    op(
        "nanquantile",
        samples=[*QUANTILES, (GAPS, 0.4, 1)],
        reference=quantile(np.nanquantile),
        dtypes="f",
        errors=QUANTILE_ERRORS,
    ),
]
