"""Curves, axes and ticks of a chart, as numbers; drawing is for `svg` and `png`.

Knows no history and no file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

# Four of the palette of Okabe and Ito, told apart also by colour-blind readers
# (https://jfly.uni-koeln.de/color/).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Curve:
    """A line of points; `marked` ones are few and show each point."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    marked: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Axis:
    """A range with ticks, and where on the page it lies."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    ticks: list[tuple[float, str]] = field(default_factory=list)

    def place(self, value: float) -> float:
        """The position of a value on the page."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Chart:
    """A page with axes and curves; `build` makes one from curves alone."""

    width: int
    height: int
    title: str
    x_name: str
    x: Axis
    y: Axis
    curves: list[tuple[Curve, str]]


def build(
    curves: Sequence[Curve],
    *,
    title: str = "",
    log: bool = False,
    width: int = 800,
    height: int = 450,
    x_name: str = "step",
) -> Chart:
    """Fit axes around curves; values that are not finite, or not positive with `log`, are left out.

    >>> from votive.train.chart import Curve, build
    >>> chart = build([Curve("loss", [1, 2, 3], [4.0, 2.0, 1.0])])
    >>> chart.y.ticks[0], chart.y.ticks[-1]
    ((1.0, '1'), (4.0, '4'))
    """
    shown: list[tuple[Curve, str]] = []
    colours: dict[str, str] = {}
    for c in curves:
        points = [(x, y) for x, y in zip(c.xs, c.ys) if math.isfinite(y) and (y > 0 or not log)]
        xs, ys = thin(points)
        # A faint curve and its smooth twin bear one name and one colour.
        colour = colours.setdefault(c.name, COLOURS[len(colours) % len(COLOURS)])
        shown.append((Curve(c.name, xs, ys, c.marked, c.faint), colour))
    all_x = [x for c, _ in shown for x in c.xs]
    all_y = [y for c, _ in shown for y in c.ys]
    return Chart(
        width,
        height,
        title,
        x_name,
        axis(all_x, 64, width - 16, count=8),
        axis(all_y, height - 48, 40, log=log, count=6),
        shown,
    )


def thin(points: Sequence[tuple[float, float]], limit: int = 1000) -> tuple[list[float], list[float]]:
    """At most about `limit` points, with every valley and spike kept."""
    if len(points) > limit:
        size = math.ceil(2 * len(points) / limit)
        kept = []
        for i in range(0, len(points), size):
            part = points[i : i + size]
            ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
            kept += sorted(ends)
        points = kept
    return [x for x, _ in points], [y for _, y in points]


def axis(values: Sequence[float], start: float, end: float, *, log: bool = False, count: int = 6) -> Axis:
    """An axis that covers the values and ends at ticks."""
    low, high = (min(values), max(values)) if values else (1.0, 2.0)
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        last = max(last, first + 1)
        powers = [10.0**e for e in range(first, last + 1)]
        return Axis(powers[0], powers[-1], start, end, True, [(p, f"{p:g}") for p in powers])
    if low == high:
        low, high = low - abs(low) / 2 - 0.5, high + abs(high) / 2 + 0.5
    step = nice_step((high - low) / count)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = [k * step for k in range(first, last + 1)]
    return Axis(ticks[0], ticks[-1], start, end, False, [(t, f"{t:.6g}") for t in ticks])


def nice_step(rough: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `rough`.

    >>> from votive.train.chart import nice_step
    >>> [nice_step(x) for x in (0.3, 1, 7)]
    [0.5, 1.0, 10.0]
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return min(f * power for f in (1, 2, 5, 10) if f * power >= rough * (1 - 1e-9))


def smooth(values: Sequence[float], span: int) -> list[float]:
    """The exponential moving average with the weight of about `span` values, without start bias."""
    keep = 1 - 2 / (span + 1)
    total = weight = 0.0
    out = []
    for v in values:
        if math.isfinite(v):
            total, weight = keep * total + v, keep * weight + 1
        out.append(total / weight if weight else v)
    return out


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """A curve in one line of text.

    >>> votive.train.sparkline([3, 2, 1, 1])
    '█▅▁▁'
    """
    known = [v for v in values if math.isfinite(v)]
    if not known:
        return ""
    if len(known) > width:
        cuts = [i * len(known) // width for i in range(width + 1)]
        known = [sum(known[a:b]) / (b - a) for a, b in pairwise(cuts)]
    low, high = min(known), max(known)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((v - low) * scale)] for v in known)
