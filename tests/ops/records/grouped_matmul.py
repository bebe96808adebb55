"""Records for products of groups of rows with a matrix each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def ends(*values: int) -> S:
    return S(values=list(values), dtype="int32")


def grouped(a: Any, b: Any, offs: Any = None) -> Any:
    if offs is None:
        return a @ b
    spans = list(enumerate(pairwise([0, *offs])))
    if a.ndim == b.ndim == 2:
        return np.stack([a[:, lo:hi] @ b[lo:hi] for _, (lo, hi) in spans])
    if a.ndim == 2:
        out = np.zeros((a.shape[0], b.shape[2]), a.dtype)
        for i, (lo, hi) in spans:
            out[lo:hi] = a[lo:hi] @ b[i]
        return out
    out = np.zeros((a.shape[1], b.shape[1]), a.dtype)
    for i, (lo, hi) in spans:
        out[:, lo:hi] = a[i] @ b[:, lo:hi]
    return out


RECORDS = [
    op(
        "nn.functional.grouped_mm",
        samples=[
            (S(6, 4), S(3, 4, 5), {"offs": ends(2, 2, 6)}),
            (S(6, 4), S(2, 4, 5), {"offs": ends(1, 4)}),
            (S(2, 3, 4), S(4, 6), {"offs": ends(2, 5)}),
            (S(3, 6), S(6, 4), {"offs": ends(2, 2, 6)}),
            (S(2, 3, 4), S(2, 4, 5)),
            (S(0, 4), S(2, 4, 5), {"offs": ends(0, 0)}),
        ],
        reference=grouped,
        torch=False,  # It takes rows of whole 16 bytes only.
        dtypes="f",
        errors=[
            ((S(6, 4), S(3, 4, 5)), RuntimeError),
            ((S(6, 4), S(3, 4, 5), {"offs": ends(2, 6)}), RuntimeError),
            ((S(2, 6, 4), S(2, 4, 5), {"offs": ends(2, 6)}), RuntimeError),
            ((S(6, 4), S(2, 3, 5), {"offs": ends(2, 6)}), RuntimeError),
            ((S(6, 4), S(2, 4, 5), {"offs": S(values=[2, 6], dtype="int64")}), RuntimeError),
            ((S(6, 4), S(2, 4, 5), {"offs": ends(2, 6), "bias": S(2, 5)}), RuntimeError),
        ],
    )
]
