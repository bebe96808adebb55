"""Figures as SVG and PNG: what draws itself, lines and bars. Knows numbers and names only."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..serialization.atomic import replacing
from ..train.chart import COLOURS, Axis, Curve, axis, build
from .canvas import INK, LETTER, Canvas
from .display import Displayable


class Plottable(Displayable):
    """What can be drawn: `figure(...)` says how, `svg`, `png` and `save` pass its arguments on."""

    def figure(self, *args: Any, **kwargs: Any) -> Any:
        """The figure that is drawn."""
        raise NotImplementedError

    def svg(self, *args: Any, **kwargs: Any) -> str:
        """The figure as an SVG document."""
        return self.figure(*args, **kwargs).canvas().svg()

    def png(self, *args: Any, **kwargs: Any) -> bytes:
        """The figure as a PNG file."""
        return self.figure(*args, **kwargs).canvas().png()

    def save(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        """Write the figure into a file whose name ends in .svg or .png."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".svg", ".png"):
            raise ValueError(f"save: the name must end in .svg or .png, got {path.name!r}.")
        if kind == ".png":
            picture = self.png(*args, **kwargs)
        else:
            picture = self.svg(*args, **kwargs).encode()
        with replacing(path) as f:
            f.write(picture)

    def _repr_svg_(self) -> str | None:
        # For what shows no tables and no widgets; a large one would fill the file of a notebook.
        text = self.svg()
        return text if len(text) <= 1 << 16 else None


class Figure(Plottable):
    """Numbers with names, that can be drawn as they are."""

    def figure(self) -> Any:
        return self

    def canvas(self) -> Canvas:
        """The shapes of this figure."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The numbers and names as plain values."""
        return asdict(self)  # type: ignore[call-overload]  # all figures are dataclasses


def short(text: str, limit: int = 24) -> str:
    """A text of limited length, its beginning left out: the ends of addresses tell most.

    >>> from votive.glass.plots import short
    >>> short("model.layers.0.mlp", 10)
    '…ers.0.mlp'
    """
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


@dataclass(frozen=True)
class Lines(Figure):
    """Curves over the same points.

    >>> from votive.glass.plots import Lines
    >>> lines = Lines({"norm": [1.0, 2.0, 4.0]}, points=["embedding", "0", "1"], title="growth")
    >>> lines.svg()[:4], lines.to_dict()["curves"]
    ('<svg', {'norm': [1.0, 2.0, 4.0]})
    """

    curves: Mapping[str, Sequence[float]]
    points: Sequence[str] | None = None
    title: str = ""
    x_name: str = ""
    y_name: str = ""
    log: bool = False
    note: str = ""

    def canvas(self) -> Canvas:
        curves = [Curve(n, list(range(len(ys))), ys, True) for n, ys in self.curves.items()]
        chart = build(curves, title=self.title, log=self.log, x_name=self.x_name)
        names = [short(p, 16) for p in self.points or ()]
        room = LETTER * max(map(len, names), default=4)
        height = chart.height + room
        canvas = Canvas(chart.width, height + (18 if self.note else 0))
        canvas.text(8, height + 6, self.note)
        x = Axis(chart.x.low, chart.x.high, 88, chart.width - 16, False, chart.x.ticks)
        count = max((len(c.xs) for c in curves), default=1)
        if names:
            # Named points need no room beside the first and the last.
            x = Axis(-0.5, max(count, 1) - 0.5, 88, chart.width - 16)
        y = chart.y
        _frame(canvas, chart.title, x, y, self.y_name)
        ticks = list(enumerate(names)) if names else x.ticks
        step = max(1, -(-len(ticks) // 48))
        for value, label in ticks[::step]:
            at = x.place(value)
            canvas.line(at, y.start, at, y.start + 4)
            if names:
                canvas.text(at, y.start + 8, label, "end", upright=True)
            else:
                canvas.text(at, y.start + 14, label, "middle")
        canvas.text((x.start + x.end) / 2, height - 10, self.x_name, "middle")
        for i, (curve, colour) in enumerate(chart.curves):
            spots = [(x.place(a), y.place(b)) for a, b in zip(curve.xs, curve.ys, strict=True)]
            for (a, b), (c, d) in pairwise(spots):
                canvas.line(a, b, c, d, colour, 2)
            for a, b in spots:
                canvas.rectangle(a - 2.5, b - 2.5, 5, 5, colour, curve.name)
            if len(chart.curves) > 1:
                canvas.text(x.end, y.end + 8 + 16 * i, curve.name, "end", colour=colour)
        return canvas


def _frame(canvas: Canvas, title: str, x: Axis, y: Axis, y_name: str) -> None:
    canvas.text((x.start + x.end) / 2, 16, title, "middle")
    for value, label in y.ticks:
        at = y.place(value)
        canvas.line(x.start, at, x.end, at, "#bbbbbb", 0.5)
        canvas.text(x.start - 6, at, label, "end")
    canvas.line(x.start, y.start, x.end, y.start)
    canvas.text(12, (y.start + y.end) / 2, y_name, "middle", upright=True)


@dataclass(frozen=True)
class Bars(Figure):
    """A bar for each name, to the right for what is positive.

    >>> from votive.glass.plots import Bars
    >>> Bars([1.0, -0.5], ["attention", "mlp"]).svg().count("<rect")
    2
    """

    values: Sequence[float]
    names: Sequence[str]
    title: str = ""
    x_name: str = ""
    note: str = ""

    def canvas(self) -> Canvas:
        names = [short(n, 32) for n in self.names]
        left = 16 + LETTER * max(map(len, names), default=0)
        row, top = 18, 40
        width = left + 460
        height = top + row * len(names) + 52
        canvas = Canvas(max(width, LETTER * len(self.note) + 16), height + (18 if self.note else 0))
        canvas.text(8, height + 6, self.note)
        canvas.text(width / 2, 16, self.title, "middle")
        x = axis([0.0, *filter(math.isfinite, self.values)], left, width - 72, count=5)
        bottom = top + row * len(names)
        for value, label in x.ticks:
            canvas.line(x.place(value), top, x.place(value), bottom, "#bbbbbb", 0.5)
            canvas.text(x.place(value), bottom + 14, label, "middle")
        for i, (name, value) in enumerate(zip(names, self.values, strict=True)):
            y = top + row * i
            # What is infinite goes to the edge.
            inside = min(max(value, x.low), x.high) if value == value else 0.0
            zero, end = x.place(0), x.place(inside)
            colour = COLOURS[0] if value >= 0 else COLOURS[1]
            tip = f"{self.names[i]}: {value:.6g}"
            canvas.rectangle(min(zero, end), y + 3, abs(end - zero), row - 6, colour, tip)
            canvas.text(left - 8, y + row / 2, name, "end")
            canvas.text(max(zero, end) + 4, y + row / 2, f"{value:.3g}")
        canvas.line(x.place(0), top, x.place(0), bottom, INK)
        canvas.text((x.start + x.end) / 2, height - 12, self.x_name, "middle")
        return canvas
