"""Records for order: sorting, the largest few, distinct values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

NAN = float("nan")
TIES = S(2, 4, values=[[1.0, 0.0, 1.0, 0.0], [2.0, 2.0, 0.0, 1.0]], grad=False)
GAPS = S(4, dtype="float64", values=[1.0, NAN, 3.0, NAN], grad=False)
REPEATS = S(6, values=[3.0, 1.0, 1.0, 2.0, 3.0, 3.0])
SLICES = S(3, 2, values=[[2.0, 1.0], [1.0, 2.0], [2.0, 1.0]])


def order(row: Any, descending: bool) -> list[int]:
    """Stable, NaN largest, by comparing keys: independent of NumPy's sort."""
    key = lambda i: (row[i] != row[i], 0 if row[i] != row[i] else row[i])
    if not descending:
        return sorted(range(len(row)), key=key)
    ranks = {k: n for n, k in enumerate(sorted({key(i) for i in range(len(row))}))}
    return sorted(range(len(row)), key=lambda i: -ranks[key(i)])


def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    if x.size == 0:
        return x, np.zeros(x.shape, np.int64)
    index = np.apply_along_axis(lambda r: np.array(order(r, descending), np.int64), dim, x)
    return np.take_along_axis(x, index, dim), index


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, index = sort(x, dim, largest)
    if x.ndim == 0:
        return values, index
    return np.take(values, range(k), axis=dim), np.take(index, range(k), axis=dim)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, index = sort(x, dim)
    if x.ndim == 0:
        return values, index
    pick = [k - 1] if keepdim else k - 1
    return np.take(values, pick, axis=dim), np.take(index, pick, axis=dim)


def unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    found = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    inverse = found[1].reshape(x.shape if dim is None else (-1,))
    return [found[0], *[inverse] * return_inverse, *[found[2]] * return_counts]


def unique_consecutive(x: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None) -> Any:
    rows = list(x.reshape(-1)) if dim is None else list(np.moveaxis(x, dim, 0))
    kept: list[Any] = []
    which: list[int] = []
    for row in rows:
        if not kept or not np.array_equal(kept[-1], row):
            kept.append(row)
        which.append(len(kept) - 1)
    values = np.array(kept) if dim is None else np.stack(kept, dim)
    inverse = np.array(which).reshape(x.shape if dim is None else (-1,))
    counts = np.array([which.count(i) for i in range(len(kept))])
    return [values, *[inverse] * return_inverse, *[counts] * return_counts]


SORTED: list[Any] = [
    (S(3, 4), {"stable": True}),
    (S(3, 4), {"dim": 0, "stable": True}),
    (TIES, {"stable": True}),
    (TIES, {"descending": True, "stable": True}),
    (GAPS, {"stable": True}),
    (GAPS, {"descending": True, "stable": True}),
    (S(), {"stable": True}),
    (S(2, 0), {"stable": True}),
]

RECORDS = [
    op(
        "sort",
        samples=SORTED,
        reference=sort,
        dtypes="bif",
        errors=[((S(3), 1), IndexError), ((S(3, dtype="complex128"),), RuntimeError)],
    ),
    op(
        "argsort",
        samples=SORTED,
        reference=lambda *a, **k: sort(*a, **k)[1],
        dtypes="bif",
        grad=False,
        errors=[((S(3), 1), IndexError)],
    ),
    op("msort", samples=[(S(4, 3),), (GAPS,), (S(),)], reference=lambda x: sort(x, 0)[0], dtypes="bif"),
    op(
        "topk",
        samples=[
            (S(3, 5), 2),
            (S(3, 5), 2, 0),
            (S(3, 5), 3, -1, False),
            (GAPS, 1),
            (S(3, 5), 0),
            (S(4), 4),
            (S(), 1),
            (S(), 0),
            (S(), 0, -1, False),
            (S(1), 0),
            (S(0, 3), 2),
            (S(3, 0), 0),
        ],
        reference=topk,
        # Equal values may give other indices than torch's: integers are left out.
        dtypes="f",
        errors=[
            ((S(3), 4), RuntimeError),
            ((S(3), -1), RuntimeError),
            ((S(), 2), RuntimeError),
            ((S(), -1), RuntimeError),
            ((S(3), 1, 1), IndexError),
            ((S(3, dtype="bool"), 1), RuntimeError),
        ],
    ),
    op(
        "kthvalue",
        samples=[(S(3, 5), 2), (S(3, 5), 1, 0), (S(3, 5), 5, 1, True), (S(), 1), (S(0, 3), 2)],
        reference=kthvalue,
        dtypes="f",
        errors=[
            ((S(3), 4), RuntimeError),
            ((S(3), 0), RuntimeError),
            ((S(), 0), RuntimeError),
            ((S(0), 1), IndexError),
            ((S(3, dtype="bool"), 1), NotImplementedError),
        ],
    ),
    op(
        "unique",
        samples=[
            (REPEATS,),
            (REPEATS, {"return_inverse": True}),
            (REPEATS, {"return_counts": True}),
            (S(2, 3, values=[[2.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), True, True, True),
            (SLICES, {"dim": 0, "return_inverse": True, "return_counts": True}),
            (SLICES, {"dim": -1}),
            (S(0),),
        ],
        reference=unique,
        dtypes="bif",
        grad=False,
        errors=[((S(0, 3), {"dim": 1}), RuntimeError), ((S(3), {"dim": 1}), IndexError)],
    ),
    op(
        "unique_consecutive",
        samples=[
            (REPEATS,),
            (REPEATS, True, True),
            (REPEATS, {"return_counts": True}),
            (S(3, 2, values=[[2.0, 1.0], [2.0, 1.0], [1.0, 2.0]]), True, True, 0),
            (SLICES, {"dim": 0}),
        ],
        reference=unique_consecutive,
        dtypes="bif",
        grad=False,
        errors=[((S(0, 3), {"dim": 1}), RuntimeError)],
    ),
]
