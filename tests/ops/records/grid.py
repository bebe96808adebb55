"""Records for sampling at positions of a grid."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op
from tests.ops.records.interpolate import keys


def bring_back(at: float, size: int, padding: str, align: bool) -> float:
    """A position as the padding mode sees it."""
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        while low < high and not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
    if padding != "zeros":
        at = min(max(at, 0.0), size - 1.0)
    return at


def taps(at: float, size: int, mode: str, padding: str, align: bool) -> list[tuple[int, float]]:
    """(element, weight) along one dimension; an element may lie outside."""
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    if mode == "bicubic":
        near = range(math.floor(at) - 1, math.floor(at) + 3)
        return [(int(bring_back(j, size, padding, align)), keys(j - at, -0.75)) for j in near]
    at = bring_back(at, size, padding, align)
    if mode == "nearest":
        return [(round(at), 1.0)]
    low = math.floor(at)
    return [(low, low + 1 - at), (low + 1, at - low)]


def grid_sample(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Any:
    places, sizes = grid.shape[1:-1], x.shape[2:]
    out = np.zeros((*x.shape[:2], *places), x.dtype)
    for n, *at in np.ndindex(len(x), *places):
        point = grid[(n, *at)][::-1]
        along = [taps(p, s, mode, padding_mode, bool(align_corners)) for p, s in zip(point, sizes)]
        for corner in itertools.product(*along):
            where = [i for i, _ in corner]
            if all(0 <= i < s for i, s in zip(where, sizes)):
                weight = math.prod(w for _, w in corner)
                out[(n, slice(None), *at)] += weight * x[(n, slice(None), *where)]
    return out


def affine_grid(theta: Any, size: Any, align_corners: Any = None) -> Any:
    n = len(size) - 2
    out = np.zeros((size[0], *size[2:], n))
    for b, *at in np.ndindex(size[0], *size[2:]):
        point = []
        for i, s in zip(at, size[2:]):
            if align_corners:
                point.append(2 * i / (s - 1) - 1 if s > 1 else 0.0)
            else:
                point.append((2 * i + 1) / s - 1)
        out[(b, *at)] = theta[b] @ np.array([*point[::-1], 1.0])
    return out


# float64 here; the other types have a record of their own below.
IMAGE, WIDE = S(2, 2, 4, 3, dtype="float64"), S(2, 3, 2, 2, dtype="float64", low=-1.9, high=1.9)
SOLID = S(1, 2, 3, 2, 3, dtype="float64")
POINTS = S(1, 2, 1, 3, 3, dtype="float64", low=-1.7, high=1.7)
EDGES = S(values=[[[[-1, -1], [1, 1], [0, 1], [-1, 0], [3, -3]]]], dtype="float64", grad=False)

RECORDS = [
    op(
        "nn.functional.grid_sample",
        samples=[
            *[
                (IMAGE, WIDE, mode, padding, align)
                for mode in ("bilinear", "nearest", "bicubic")
                for padding in ("zeros", "border", "reflection")
                for align in (True, False)
            ],
            *[
                (SOLID, POINTS, mode, padding, align)
                for mode, padding, align in (
                    ("bilinear", "zeros", False),
                    ("bilinear", "border", True),
                    ("bilinear", "reflection", False),
                    ("nearest", "reflection", True),
                    ("nearest", "zeros", False),
                )
            ],
            (S(1, 2, 3, 4, dtype="float64"), EDGES, "bilinear", "zeros", True),
            (S(1, 2, 3, 4, dtype="float64"), EDGES, "bilinear", "border", False),
            (S(1, 2, 1, 1, dtype="float64"), EDGES, "bilinear", "reflection", True),
            (S(0, 2, 3, 4), S(0, 1, 2, 2), "nearest", "zeros", True),
        ],
        reference=grid_sample,
        errors=[
            ((IMAGE, WIDE, "linear"), ValueError),
            ((IMAGE, WIDE, "bilinear", "ones"), ValueError),
            ((IMAGE, S(1, 3, 2, 2)), RuntimeError),
            ((IMAGE, S(2, 3, 2, 3)), RuntimeError),
            ((IMAGE, S(2, 3, 2, 2, 2)), RuntimeError),
            ((S(2, 2, 4), S(2, 3, 1)), RuntimeError),
            ((IMAGE, S(2, 3, 2, 2, dtype="float32")), RuntimeError),
            ((S(2, 2, 0, 3), WIDE), RuntimeError),
            ((SOLID, POINTS, "bicubic"), RuntimeError),
            ((S(2, 2, 4, 3, dtype="int64"), S(2, 3, 2, 2, dtype="int64")), NotImplementedError),
        ],
    ),
    # torch rounds every step of half types, positions included; votive rounds the result only.
    op(
        "nn.functional.grid_sample",
        samples=[
            (S(2, 2, 4, 3), S(2, 3, 2, 2, low=-1.4, high=1.4), "bilinear", "zeros", False),
            (S(2, 2, 4, 3), S(2, 3, 2, 2, low=-1.4, high=1.4), "bicubic", "reflection", False),
        ],
        reference=grid_sample,
        torch=False,
    ),
    op(
        "nn.functional.affine_grid",
        samples=[
            (S(2, 2, 3), (2, 1, 3, 4), False),
            (S(2, 2, 3), (2, 5, 1, 4), True),
            (S(1, 3, 4), (1, 1, 2, 3, 2), False),
            (S(1, 3, 4), (1, 1, 2, 3, 1), True),
        ],
        reference=affine_grid,
        errors=[
            ((S(2, 2, 3), (2, 1, 3)), NotImplementedError),
            ((S(2, 2, 3), (2, 1, 3, 4, 2)), ValueError),
            ((S(2, 3), (2, 1, 3, 4)), ValueError),
            ((S(2, 2, 3), (2, 1, 0, 4)), ValueError),
            ((S(2, 2, 3), (3, 1, 3, 4)), RuntimeError),
            ((S(2, 2, 3, dtype="int64"), (2, 1, 3, 4)), ValueError),
        ],
    ),
]
