"""Records for finding a place in order, and counting into bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

LINE = S(4, values=[0.0, 1.0, 1.0, 3.0])
LINES = S(2, 3, values=[[0.0, 1.0, 2.0], [1.0, 1.0, 5.0]])
WANTED = S(2, 4, low=0, high=6)
CLASSES = S(6, dtype="int64", low=0, high=5)
EDGES = S(4, dtype="float64", values=[-1.0, 0.0, 0.5, 2.0])


def searchsorted(
    seq: Any, x: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
) -> Any:
    if sorter is not None:
        seq = np.take_along_axis(seq, sorter, -1)
    before = np.less_equal if right or side == "right" else np.less
    return before(seq[..., None, :] if seq.ndim > 1 else seq, np.asarray(x)[..., None]).sum(-1)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    out = np.zeros(max(minlength, int(x.max(initial=-1)) + 1), np.int64 if weights is None else float)
    for i, n in enumerate(x):
        out[n] += 1 if weights is None else weights[i]
    return out


def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    if min == max:
        min, max = x.min(), x.max()
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(x, bins, (min, max))[0].astype(float)


def histogram(x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    weight = None if weight is None else weight.reshape(-1)
    return np.histogram(x.reshape(-1), bins, range, weights=weight, density=density)


def histogramdd(x: Any, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    pairs = None if range is None else np.reshape(range, (-1, 2))
    hist, edges = np.histogramdd(x, bins, pairs, weights=weight, density=density)
    return [hist, *edges]


RECORDS = [
    op(
        "searchsorted",
        samples=[
            (LINE, WANTED),
            (LINE, WANTED, {"right": True}),
            (LINE, WANTED, {"side": "right"}),
            (LINES, WANTED),
            (LINE, 1.5),
            (LINE, S(low=0, high=3), {"out_int32": True}),
            (S(0), S(2)),
            (LINE, S(0, 2)),
            (S(3, values=[5.0, 1.0, 3.0]), WANTED, {"sorter": S(3, dtype="int64", values=[1, 2, 0])}),
        ],
        reference=searchsorted,
        dtypes="if",
        grad=False,
        # Rows of a sequence stand beside rows of values: stretching one alone makes no sense.
        errors=[
            ((S(), WANTED), RuntimeError),
            ((LINES, S(3, 2)), RuntimeError),
            ((LINES, 1.0), RuntimeError),
            ((LINE, WANTED, {"side": "middle"}), RuntimeError),
            ((LINE, WANTED, {"side": "left", "right": True}), RuntimeError),
            ((LINE, WANTED, {"sorter": S(3, dtype="int64", low=0, high=1)}), RuntimeError),
            ((LINE, WANTED, {"sorter": S(4, dtype="int64", low=4, high=5)}), RuntimeError),
            ((S(3, dtype="bool"), S(3, dtype="bool")), NotImplementedError),
        ],
    ),
    op(
        "bucketize",
        samples=[(WANTED, LINE), (WANTED, LINE, {"right": True}), (S(), LINE), (2.0, LINE, {"out_int32": True})],
        reference=lambda x, bounds, **options: searchsorted(bounds, x, **options),
        dtypes="if",
        grad=False,
        errors=[((WANTED, LINES), RuntimeError)],
    ),
    op(
        "bincount",
        samples=[
            (CLASSES,),
            (CLASSES, {"minlength": 9}),
            (CLASSES, S(6, dtype="float64")),
            (CLASSES, S(6, dtype="float32")),
            (CLASSES, S(6, dtype="int64")),
            (S(0, dtype="int64"),),
            (S(4, dtype="uint8", low=0, high=4),),
        ],
        reference=bincount,
        dtypes="i",
        grad=False,
        errors=[
            ((S(2, 2, dtype="int64", low=0, high=2),), RuntimeError),
            ((S(2, dtype="int64", low=-2, high=-1),), RuntimeError),
            ((S(2, dtype="float64"),), NotImplementedError),
            ((CLASSES, S(5)), RuntimeError),
            ((CLASSES, {"minlength": -1}), RuntimeError),
        ],
    ),
    op(
        "histc",
        samples=[(S(20), 5, -2, 2), (S(20), 4), (S(20), {"bins": 3, "min": -1, "max": 1}), (S(1), 3), (S(4, 5), 6)],
        reference=histc,
        dtypes="f",
        grad=False,
        errors=[
            ((S(3), 0), RuntimeError),
            ((S(3), 3, 2, 1), RuntimeError),
            ((S(3, dtype="int64"), 3), NotImplementedError),
        ],
    ),
    op(
        "histogram",
        samples=[
            (S(20, dtype="float64"), 5),
            (S(4, 5, dtype="float64"), 3, {"range": (-1.0, 1.0)}),
            (S(20, dtype="float64"), EDGES),
            (S(20, dtype="float64"), 4, {"weight": S(20, dtype="float64"), "density": True}),
            (S(0, dtype="float64"), 3),
        ],
        reference=histogram,
        dtypes="f",
        grad=False,
        errors=[
            ((S(3), 0), RuntimeError),
            ((S(3), 3, {"range": (2.0, 1.0)}), RuntimeError),
            ((S(3, dtype="int64"), 3), NotImplementedError),
            ((S(3), S(3, dtype="float32")), RuntimeError),
        ],
    ),
    op(
        "histogramdd",
        samples=[
            (S(20, 2, dtype="float64"), [3, 4]),
            (S(20, 2, dtype="float64"), 3),
            (S(20, 2, dtype="float64"), [EDGES, EDGES]),
            (S(20, 2, dtype="float64"), [3, 2], {"range": [-1.0, 1.0, -2.0, 2.0], "density": True}),
            (S(20, 1, dtype="float64"), [3], {"weight": S(20, dtype="float64")}),
        ],
        reference=histogramdd,
        dtypes="f",
        grad=False,
        errors=[((S(3), 3), RuntimeError), ((S(3, 2), [3]), RuntimeError)],
    ),
]
