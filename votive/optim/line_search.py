"""A line search for the strong Wolfe conditions. Knows one direction, no parameters.

Nocedal and Wright, "Numerical Optimization", algorithms 3.5 (bracketing) and 3.6 (zoom), with cubic
interpolation (3.59); the safeguards are those of minFunc (Schmidt 2005), which torch follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Point:
    """A position on the line: step length, loss, gradient, and the slope along the direction."""

    t: float
    loss: float
    grad: Any
    slope: float


def cubic_minimum(a: Point, b: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with these slopes is lowest, kept within bounds."""
    low, high = bounds or (min(a.t, b.t), max(a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return a.t
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    bottom = b.slope - a.slope + 2 * d2
    if bottom == 0:
        return (low + high) / 2.0
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / bottom), low), high)


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    d_max: float,
    max_evals: int,
    *,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[Point, int]:
    """A point with enough descent (c1) and a flat enough slope (c2), and how often it evaluated.

    `d_max` is the largest element of the direction: the search ends when no parameter would change
    by more than `tolerance_change`.
    """

    def climbs(p: Point) -> bool:
        return p.loss > start.loss + c1 * p.t * start.slope

    def is_flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    previous, point = start, evaluate(t)
    tries = 0
    pair: list[Point] | None = None
    while tries < max_evals:
        if climbs(point) or (tries > 1 and point.loss >= previous.loss):
            pair = [previous, point]
            break
        if is_flat(point):
            return point, tries + 1
        if point.slope >= 0:
            pair = [previous, point]
            break
        bounds = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
        further = cubic_minimum(previous, point, bounds)
        previous, point = point, evaluate(further)
        tries += 1
    if pair is None:
        return (start if start.loss <= point.loss else point), tries + 1

    low, high = (0, 1) if pair[0].loss <= pair[1].loss else (1, 0)
    stalled = False
    while tries < max_evals:
        left, right = min(p.t for p in pair), max(p.t for p in pair)
        if (right - left) * d_max < tolerance_change:
            break
        t = cubic_minimum(pair[0], pair[1])
        # Too close to an end twice in a row, or outside: step back inside by a tenth.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        point = evaluate(t)
        tries += 1
        if climbs(point) or point.loss >= pair[low].loss:
            pair[high] = point
            low, high = (0, 1) if pair[0].loss <= pair[1].loss else (1, 0)
            continue
        if is_flat(point):
            return point, tries + 1
        if point.slope * (pair[high].t - pair[low].t) >= 0:
            pair[high] = pair[low]
        pair[low] = point
    return pair[low], tries + 1
