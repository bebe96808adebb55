"""The numbers behind rotations, affine and perspective maps. Pure arithmetic, no tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Points = Sequence[Sequence[float]]


def affine_matrix(
    center: Sequence[float],
    angle: float,
    translate: Sequence[float],
    scale: float,
    shear: Sequence[float],
    inverse: bool = True,
) -> list[float]:
    """Six numbers (a, b, c, d, e, f): a point (x, y) comes from (ax + by + c, dx + ey + f).

    The map shears by x, then y, scales, rotates by `angle` degrees about `center` and translates.
    `inverse=False` gives where a point goes instead of where it comes from.
    """
    angle, shear_x, shear_y = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    (cx, cy), (tx, ty) = center, translate
    # R(angle) Sy(shear_y) Sx(shear_x), whose determinant is 1.
    a = math.cos(angle - shear_y) / math.cos(shear_y)
    c = math.sin(angle - shear_y) / math.cos(shear_y)
    b = -(a * math.tan(shear_x) + math.sin(angle))
    d = math.cos(angle) - c * math.tan(shear_x)
    if inverse:
        p, q, r, s = d / scale, -b / scale, -c / scale, a / scale
        return [p, q, cx - p * (cx + tx) - q * (cy + ty), r, s, cy - r * (cx + tx) - s * (cy + ty)]
    p, q, r, s = a * scale, b * scale, c * scale, d * scale
    return [p, q, cx + tx - p * cx - q * cy, r, s, cy + ty - r * cx - s * cy]


def expanded_size(matrix: Sequence[float], width: int, height: int) -> tuple[int, int]:
    """(width, height) that holds the whole of an image after a map about its centre."""
    # In single precision, cut after four digits: a size just above a whole number is that number.
    half = np.array([0.5 * width, 0.5 * height], np.float32)
    points = np.array(
        [[-half[0], -half[1], 1], [-half[0], half[1], 1], [half[0], half[1], 1], [half[0], -half[1], 1]], np.float32
    )
    moved = points @ np.array(matrix, np.float32).reshape(2, 3).T
    low, high = moved.min(0) + half, moved.max(0) + half
    low, high = (np.trunc(v * np.float32(1e4)) * np.float32(1e-4) for v in (low, high))
    size = np.ceil(high) - np.floor(low)
    return int(size[0]), int(size[1])


def perspective_coefficients(startpoints: Points, endpoints: Points) -> list[float]:
    """Eight numbers that lead from the four end points back to the four start points.

    (x, y) comes from ((ax + by + c) / (gx + hy + 1), (dx + ey + f) / (gx + hy + 1)).
    """
    if len(startpoints) != 4 or len(endpoints) != 4:
        raise ValueError(
            f"perspective: needs four start points and four end points, got {len(startpoints)} and {len(endpoints)}."
        )
    rows, goal = [], []
    for (u, v), (x, y) in zip(startpoints, endpoints, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        goal += [u, v]
    solved = np.linalg.lstsq(np.array(rows, np.float64), np.array(goal, np.float64), rcond=None)[0]
    return solved.astype(np.float32).tolist()


def inverted_perspective(c: Sequence[float]) -> list[float]:
    """The coefficients that lead the other way."""
    whole = c[0] * c[4] - c[1] * c[3]
    if whole == 0:
        raise RuntimeError(f"perspective: coefficients {list(c)} cannot be inverted for boxes.")
    numbers = (
        c[4] - c[5] * c[7],
        -c[1] + c[2] * c[7],
        c[1] * c[5] - c[2] * c[4],
        -c[3] + c[5] * c[6],
        c[0] - c[2] * c[6],
        -c[0] * c[5] + c[2] * c[3],
        -c[4] * c[6] + c[3] * c[7],
        -c[0] * c[7] + c[1] * c[6],
    )
    return [n / whole for n in numbers]
