"""Heat maps: a colour for each number, with names at rows and columns and a scale beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from .canvas import LETTER, Canvas
from .plots import Figure, short

# From dark to light, equal steps looking equal: points of the viridis scale of van der Walt and
# Smith (2015). Signed numbers go from blue over light grey to vermilion, of Okabe and Ito.
RISING = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")
SIGNED = ("#0072b2", "#7fb3d3", "#f2f2f2", "#eaa67a", "#d55e00")
UNKNOWN = "#9a9a9a"
# Cells of a picture, and rows and columns at most; of more, each shows the most that lies in it.
MOST, DOWN, ACROSS = 10_000, 256, 512


def colour_of(share: float, scale: Sequence[str]) -> str:
    """The colour at a share, 0 to 1, of a scale.

    >>> from votive.glass.heatmap import SIGNED, colour_of
    >>> colour_of(0.5, SIGNED), colour_of(2.0, SIGNED)
    ('#f2f2f2', '#d55e00')
    """
    at = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    mix = at - low
    pairs = [(int(scale[low][i : i + 2], 16), int(scale[low + 1][i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * mix):02x}" for a, b in pairs)


@dataclass(frozen=True)
class Heatmap(Figure):
    """Numbers in rows and columns. `signed` centres the colours at 0; `cells` are texts in the cells.

    `tips` are shown when you point at a cell, `note` below. Where names are too many to be
    read, `row_marks` and `column_marks` are written in their places: a text, or "" for none. A
    picture has at most 10,000 cells; of larger ones each cell shows the number of the largest size
    in it, and that is said.

    >>> from votive.glass.heatmap import Heatmap
    >>> picture = Heatmap([[0.0, 1.0]], rows=["layer 0"], columns=["a", "<b>"])
    >>> "&lt;b&gt;" in picture.svg()
    True
    """

    values: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str = ""
    x_name: str = ""
    y_name: str = ""
    legend: str = ""
    signed: bool = False
    cells: Sequence[Sequence[str]] | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""
    tips: Sequence[Sequence[str]] | None = None
    row_marks: Sequence[str] | None = None
    column_marks: Sequence[str] | None = None

    def __post_init__(self) -> None:
        shape = (len(self.values), len(self.values[0]) if self.values else 0)
        if shape != (len(self.rows), len(self.columns)):
            raise ValueError(
                f"Heatmap: {shape[0]} x {shape[1]} values have {len(self.rows)} rows and "
                f"{len(self.columns)} columns of names."
            )
        for marks, names in ((self.row_marks, self.rows), (self.column_marks, self.columns)):
            if marks is not None and len(marks) != len(names):
                raise ValueError(f"Heatmap: {len(names)} names have {len(marks)} marks.")

    def bounds(self) -> tuple[float, float]:
        """The numbers at the ends of the colour scale."""
        known = [v for row in self.values for v in row if math.isfinite(v)] or [0.0]
        low = min(known) if self.low is None else self.low
        high = max(known) if self.high is None else self.high
        if self.signed:
            most = max(abs(low), abs(high)) or 1.0
            return -most, most
        return (low, high) if high > low else (low, low + 1.0)

    def within(self, down: int, across: int) -> Heatmap:
        """The same in at most so many cells down and across, and what was left out is said.

        >>> large = Heatmap([[1.0, -3.0, 2.0]], ["a"], ["x", "y", "z"])
        >>> small = large.within(1, 2)
        >>> small.values, small.columns, small.note
        ([[1.0, -3.0]], ['x', 'y … z'], '1 x 3 numbers; each cell: the largest in size of 1 x 2')
        """
        shape = (len(self.rows), len(self.columns))
        if shape[0] <= down and shape[1] <= across:
            return self
        cuts = [_cuts(n, most) for n, most in zip(shape, (down, across), strict=True)]
        found = np.asarray(self.values, np.float64).reshape(shape)
        for axis, starts in enumerate(cuts):
            found = _largest(found, starts, axis)
        size = " x ".join(str(math.ceil(n / len(c))) for n, c in zip(shape, cuts, strict=True))
        summary = f"{shape[0]:,} x {shape[1]:,} numbers; each cell: the largest in size of {size}"
        return replace(
            self,
            values=found.tolist(),
            rows=_ranges(self.rows, cuts[0]),
            columns=_ranges(self.columns, cuts[1]),
            cells=None,
            tips=None,
            row_marks=_first(self.row_marks, cuts[0]),
            column_marks=_first(self.column_marks, cuts[1]),
            note="; ".join(filter(None, (self.note, summary))),
        )

    def canvas(self) -> Canvas:
        rows, columns = len(self.rows), len(self.columns)
        down, across = min(rows, DOWN), min(columns, ACROSS)
        if down * across > MOST:
            # In the shape of the numbers, as far as they leave a choice.
            down = max(min(down, 40), min(down, round((MOST * down / across) ** 0.5)))
            across = min(across, MOST // down)
        small = self.within(down, across)
        return self._canvas() if small is self else small._canvas()

    def _canvas(self) -> Canvas:
        low, high = self.bounds()
        scale = SIGNED if self.signed else RISING
        rows = [short(r) for r in self.row_marks or self.rows]
        columns = [c if len(c) <= 12 else c[:11] + "…" for c in self.column_marks or self.columns]
        many = len(columns) > 48
        inside = [] if many else [c for row in self.cells or () for c in row]
        longest = max((min(len(c), 10) for c in inside), default=0)
        wide = max(10 if many else 26, LETTER * longest + 6)
        tall = 22 if inside else (26 if len(rows) <= 16 else 14)
        places = [i for i, c in enumerate(columns) if c]
        apart = wide * min((b - a for a, b in pairwise(places)), default=1)
        upright = any(LETTER * len(c) + 2 > apart for c in columns)
        under = LETTER * max(map(len, columns), default=1) + 8 if upright else 22
        left, top = 34 + LETTER * max(map(len, rows), default=0), 36
        right, bottom = left + wide * len(columns), top + tall * len(rows)
        title_room = LETTER * len(self.title) + 16
        title_room = max(title_room, LETTER * len(self.note) + 16)
        canvas = Canvas(max(right + 126, title_room), bottom + under + (44 if self.note else 26))
        canvas.text(8, canvas.height - 8, self.note)
        canvas.text(canvas.width / 2, 16, self.title, "middle")
        for r, row in enumerate(self.values):
            canvas.text(left - 6, top + tall * (r + 0.5), rows[r], "end")
            for c, value in enumerate(row):
                x, y = left + wide * c, top + tall * r
                share = (value - low) / (high - low) if math.isfinite(value) else math.nan
                colour = UNKNOWN if math.isnan(share) else colour_of(share, scale)
                tip = f"{self.rows[r]}, {self.columns[c]}: {value:.6g}"
                if self.tips:
                    tip = f"{tip}\n{self.tips[r][c]}"
                canvas.rectangle(x, y, wide, tall, colour, tip)
                if inside and self.cells:
                    label = self.cells[r][c]
                    label = label if len(label) <= 10 else label[:9] + "…"
                    canvas.text(x + wide / 2, y + tall / 2, label, "middle", colour=_over(colour))
        free = -math.inf
        for c in places:
            middle = left + wide * (c + 0.5)
            if upright and middle < free:
                continue
            free = middle + 14
            if upright:
                canvas.text(middle, bottom + 6, columns[c], "end", upright=True)
            else:
                canvas.text(middle, bottom + 12, columns[c], "middle")
        canvas.text((left + right) / 2, bottom + under + 16, self.x_name, "middle")
        canvas.text(12, (top + bottom) / 2, self.y_name, "middle", upright=True)
        _scale(canvas, right + 18, top, max(bottom - top, 60), low, high, scale, self.legend)
        return canvas


def _cuts(size: int, most: int) -> list[int]:
    """Where the cells begin in which so many numbers are shown."""
    return [size * i // min(size, most) for i in range(min(size, most))]


def _largest(x: np.ndarray, starts: list[int], axis: int) -> np.ndarray:
    """The number of the largest size in each stretch; one that is not a number is."""
    if len(starts) == x.shape[axis]:
        return x
    high, low = np.maximum.reduceat(x, starts, axis), np.minimum.reduceat(x, starts, axis)
    return np.where(np.abs(low) > np.abs(high), low, high)


def _ranges(names: Sequence[str], starts: list[int]) -> list[str]:
    ends = [*starts[1:], len(names)]
    return [names[a] if b - a == 1 else f"{names[a]} … {names[b - 1]}" for a, b in zip(starts, ends, strict=True)]


def _first(marks: Sequence[str] | None, starts: list[int]) -> list[str] | None:
    """The first mark in each stretch."""
    if marks is None:
        return None
    ends = [*starts[1:], len(marks)]
    return [next(filter(None, marks[a:b]), "") for a, b in zip(starts, ends, strict=True)]


def _scale(
    canvas: Canvas, x: float, top: float, height: float, low: float, high: float, colours: Sequence[str], name: str
) -> None:
    steps = 40
    for i in range(steps):
        y = top + height * (1 - (i + 1) / steps)
        canvas.rectangle(x, y, 12, height / steps + 0.5, colour_of((i + 0.5) / steps, colours))
    for share in (0.0, 0.5, 1.0):
        value = low + (high - low) * share
        canvas.text(x + 17, top + height * (1 - share), f"{value:.3g}")
    canvas.text(x + 98, top + height / 2, name, "middle", upright=True)


def _over(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#000000" if 0.299 * r + 0.587 * g + 0.114 * b > 140 else "#ffffff"
