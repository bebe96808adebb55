"""Draws loss curves over one another as SVG text. Knows numbers and names only."""

from __future__ import annotations

import math
from html import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 40, 44
# A broad pale line under a thin dark one: both stay visible where they coincide.
LINES = [("#1d4ed8", 1.2), ("#fbbf24", 5.0)]


def _ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Round numbers between low and high: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def overlay(curves: dict[str, list[float]], title: str) -> str:
    """Up to two curves over the step number; the first is drawn on top.

    >>> overlay({"a": [3.0, 2.0], "b": [3.0, 2.5]}, "loss").count("<polyline")
    2
    """
    values = [v for curve in curves.values() for v in curve]
    low, high = min(values), max(values)
    high = high if high > low else low + 1
    last = max(len(curve) for curve in curves.values()) - 1 or 1

    def x(step: float) -> float:
        return LEFT + step / last * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for value in _ticks(low, high):
        out.append(
            f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>'
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>'
        )
    for step in _ticks(0, last):
        out.append(f'<text x="{x(step):.1f}" y="{HEIGHT - 24}" text-anchor="middle">{step:.6g}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">step</text>')
    named = list(zip(curves.items(), LINES))
    for (_, curve), (colour, width) in reversed(named):
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(curve))
        out.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )
    for row, ((name, _), (colour, width)) in enumerate(named):
        top = TOP + 16 + 20 * row
        out.append(
            f'<path d="M{WIDTH - 120} {top}h28" stroke="{colour}" stroke-width="{width}"/>'
            f'<text x="{WIDTH - 84}" y="{top + 4}">{escape(name)}</text>'
        )
    return "\n".join([*out, "</svg>\n"])
