"""Records for derivatives of sampled functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def at(*values: float) -> S:
    return S(len(values), values=list(values))


def gradient(x: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    dims = list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    out = []
    for d, step in zip(dims, steps, strict=True):
        n = x.shape[d]
        where = np.asarray(step) if np.ndim(step) else np.arange(n) * step
        y, result = np.moveaxis(x * 1.0, d, 0), []
        for i in range(n):
            # The polynomial through the nearest points: three, or two at ends of order 1.
            if 0 < i < n - 1:
                near = [i - 1, i, i + 1]
            else:
                near = [j for j in range(n) if abs(j - i) <= edge_order]
            result.append(sum(y[j] * slope(where[near], near.index(j), where[i]) for j in near))
        out.append(np.moveaxis(np.stack(result), 0, d))
    return out


def slope(points: Any, k: int, x: float) -> float:
    """The derivative at x of Lagrange's polynomial that is 1 at point k and 0 at the others."""
    others = np.delete(points, k)
    scale = np.prod(points[k] - others)
    return sum(np.prod(x - np.delete(others, i)) for i in range(len(others))) / scale


RECORDS = [
    op(
        "gradient",
        reference=gradient,
        dtypes="f",
        samples=[
            (S(5),),
            (S(2),),
            (S(5), {"edge_order": 2}),
            (S(3, 4),),
            (S(3, 4), {"dim": 1}),
            (S(3, 4), {"dim": (-1, 0), "spacing": (0.5, 2.0), "edge_order": 2}),
            (S(3, 4), {"spacing": 2}),
            (S(3, 4), {"spacing": [0.5], "dim": 0}),
            (S(5), {"spacing": [at(0.0, 1.0, 3.0, 4.0, 7.0)]}),
            (S(3, 4), {"spacing": (at(0.0, 1.0, 4.0), at(0.0, 2.0, 3.0, 5.0)), "edge_order": 2}),
        ],
        errors=[
            ((S(5), {"edge_order": 3}), RuntimeError),
            ((S(1),), RuntimeError),
            ((S(2), {"edge_order": 2}), RuntimeError),
            ((S(5), {"dim": 1}), IndexError),
            ((S(3, 4), {"dim": (0, 0)}), RuntimeError),
            ((S(3, 4), {"spacing": (1.0,)}), RuntimeError),
            ((S(5), {"spacing": [S(4)]}), RuntimeError),
            ((S(5), {"spacing": [S(5, 1)]}), RuntimeError),
            ((S(3, 4), {"spacing": (1.0, S(4))}), TypeError),
            ((S(5, dtype="uint8"),), RuntimeError),
            ((S(5, dtype="bool"),), RuntimeError),
            ((S(5), {"spacing": S(5)}), TypeError),
        ],
    )
]
