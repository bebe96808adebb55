"""Records for sums, means and maxima of rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

TABLE = S(5, 3)
FIVE = S(values=[1, 2, 4, 0, 1], dtype="int64")
SQUARE = S(values=[[1, 2], [4, 0]], dtype="int64")
NONE = S(0, dtype="int64", low=0, high=5)


def offsets(*values: int) -> S:
    return S(len(values), values=list(values), dtype="int64")


def embedding_bag(
    at: Any,
    weight: Any,
    offsets: Any = None,
    mode: str = "mean",
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    if at.ndim == 2:
        offsets, include_last_offset = np.arange(len(at)) * at.shape[1], False
    at, factors = at.reshape(-1), np.ones(at.size)
    if per_sample_weights is not None:
        factors = per_sample_weights.reshape(-1)
    ends = [*offsets[1:], *([] if include_last_offset else [at.size])]
    out = np.zeros((len(ends), weight.shape[1]))
    for i, (start, end) in enumerate(zip(offsets, ends, strict=False)):
        picked = [j for j in range(start, end) if padding_idx is None or at[j] != padding_idx % 5]
        rows = weight[at[picked]] * factors[picked, None]
        if len(rows):
            out[i] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows, 0)
    return out


def samples(mode: str) -> list[Any]:
    how = {"mode": mode}
    return [
        (SQUARE, TABLE, how),
        (FIVE, TABLE, offsets(0, 2, 2), how),
        (FIVE, TABLE, offsets(0, 2, 5), {**how, "include_last_offset": True}),
        (FIVE, TABLE, offsets(0, 2, 3), {**how, "padding_idx": 4}),
        (FIVE, TABLE, offsets(0, 1, 4), {**how, "padding_idx": -5}),
    ]


NARROW = {"mode": "sum", "per_sample_weights": S(5, dtype="float32")}

RECORDS = [
    op(
        "nn.functional.embedding_bag",
        samples=[*samples("mean"), *samples("sum"), *samples("max")],
        # A padding row has no gradient in torch either: it does not enter the value.
        reference=embedding_bag,
        errors=[
            ((FIVE, TABLE), ValueError),
            ((SQUARE, TABLE, offsets(0)), ValueError),
            ((S(1, 1, 1, dtype="int64"), TABLE), ValueError),
            ((FIVE, S(5)), ValueError),
            ((FIVE, TABLE, offsets(1, 2)), RuntimeError),
            ((FIVE, TABLE, offsets(0, 9)), RuntimeError),
            ((FIVE, TABLE, offsets(0), {"mode": "prod"}), ValueError),
            ((FIVE, TABLE, offsets(0), {"mode": "max", "scale_grad_by_freq": True}), ValueError),
            ((FIVE, TABLE, offsets(0), {"mode": "max", "sparse": True}), ValueError),
            ((FIVE, TABLE, offsets(0), {"per_sample_weights": S(5)}), NotImplementedError),
            ((FIVE, TABLE, offsets(0), {"mode": "sum", "per_sample_weights": S(4)}), ValueError),
            ((FIVE, TABLE, offsets(0), NARROW), RuntimeError),
            ((FIVE, TABLE, offsets(0), {"padding_idx": 5}), RuntimeError),
            ((FIVE, S(5, 3, dtype="int64"), offsets(0)), RuntimeError),
            ((S(values=[5], dtype="int64"), TABLE, offsets(0)), RuntimeError),
        ],
    ),
    op(
        "nn.functional.embedding_bag",
        samples=[
            (FIVE, TABLE, offsets(0, 2, 2), {"mode": "sum", "per_sample_weights": S(5)}),
            (SQUARE, TABLE, {"mode": "sum", "per_sample_weights": S(2, 2), "padding_idx": 2}),
        ],
        reference=embedding_bag,
    ),
    op(
        # torch's backward crashes on these.
        "nn.functional.embedding_bag",
        samples=[(NONE, TABLE, offsets(0, 0), {"mode": mode}) for mode in ("mean", "sum", "max")],
        reference=embedding_bag,
        grad=False,
    ),
]
