"""Flame graphs: a box for each call, as wide as its time, below it what it calls."""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .canvas import Canvas
from .canvas import xml as escape
from .plots import Figure

if TYPE_CHECKING:
    from .profile import Span


_ROW = 18
_LETTER = 6.6  # width of a letter, about
_TOP = 34
# Boxes narrower than this cannot be seen.
_LEAST = 0.3
Box: TypeAlias = tuple[float, float, int, str, str, str]  # left, width, row, name, tip, colour


def flame(root: Span, *, width: int = 1200, title: str = "") -> str:
    """The calls below `root` as a flame graph that hangs down; times are in the tooltips.

    >>> from votive.glass.flame import flame
    >>> from votive.glass.profile import Span
    >>> run = Span("", "run", "module", seconds=1.0, children=[Span("a<b", "x", "op", seconds=0.5)])
    >>> "a&lt;b" in flame(run)
    True
    """
    if width < 100:
        raise ValueError(f"flame: width must be at least 100, got {width}.")
    graph = Flame.of(root, least=_LEAST / width)
    height = _TOP + (max(b[2] for b in graph.boxes) + 1) * _ROW + 8
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="monospace" font-size="11">',
            "<style>rect:hover{stroke:#000;stroke-width:1}text{pointer-events:none}</style>",
            '<rect width="100%" height="100%" fill="#fff"/>',
            f'<text x="8" y="20" font-size="13">{escape(title or graph.title)}</text>',
            *(_svg_box(box, width) for box in graph.boxes),
            "</svg>",
            "",
        ]
    )


def _svg_box(box: Box, width: int) -> str:
    left, share, row, name, tip, colour = box
    x, top, short = left * width, _TOP + row * _ROW, _short(name, share * width)
    text = f'<text x="{x + 3:.2f}" y="{top + 13}">{escape(short)}</text>' if short else ""
    return (
        f'<g><title>{escape(tip)}</title><rect x="{x:.2f}" y="{top}" width="{share * width:.2f}" '
        f'height="{_ROW - 1}" fill="{colour}" rx="1"/>{text}</g>'
    )


@dataclass(frozen=True)
class Flame(Figure):
    """A flame graph as a figure: boxes are (left, width, row, name, tip, colour), shares of 1.

    >>> from votive.glass.flame import Flame
    >>> from votive.glass.profile import Span
    >>> run = Span("", "run", "module", seconds=1.0, children=[Span("a", "x", "op", seconds=0.5)])
    >>> [box[:4] for box in Flame.of(run).boxes]
    [(0.0, 1.0, 0, 'run'), (0.0, 0.5, 1, 'a')]
    """

    boxes: Sequence[Box]
    title: str = ""
    note: str = ""

    @classmethod
    def of(cls, root: Span, least: float = _LEAST / 1200) -> Flame:
        """The calls below a span; boxes too narrow to be seen are left out, and counted."""
        boxes: list[Any] = []
        todo, left_out = [(root, 0.0, 1.0, 0)], 0
        while todo:
            span, left, width, row = todo.pop()
            if width < least and row:
                left_out += sum(1 for _ in span.walk())
                continue
            name = span.address or span.name
            boxes.append((left, width, row, name, _tip(span, root.seconds), _colour(span)))
            at, below = left, []
            for child in span.children:
                share = width * child.seconds / span.seconds if span.seconds else 0.0
                below.append((child, at, share, row + 1))
                at += share
            todo += reversed(below)
        note = f"{left_out:,} calls are too short to be seen" if left_out else ""
        return cls(boxes, f"{root.seconds * 1e3:.3f} ms", note)

    def canvas(self) -> Canvas:
        width, deepest = 1000.0, max((b[2] for b in self.boxes), default=0)
        canvas = Canvas(width, _TOP + (deepest + 1) * _ROW + (26 if self.note else 8))
        canvas.text(8, 16, self.title)
        for left, share, row, name, tip, colour in self.boxes:
            top = _TOP + row * _ROW
            canvas.rectangle(left * width, top, max(share * width - 0.5, 0.3), _ROW - 1, colour, tip)
            # A letter of the canvas is wider than one of the plain graph.
            canvas.text(left * width + 3, top + _ROW / 2, _short(name, share * width * 0.9), colour="#222222")
        canvas.text(8, canvas.height - 12, self.note)
        return canvas


def _tip(span: Span, whole: float) -> str:
    share = 100 * span.seconds / whole if whole else 0.0
    return (
        f"{span.address or span.name} ({span.name})\n{span.seconds * 1e3:.3f} ms, {share:.1f} %\n"
        f"own {span.own * 1e3:.3f} ms\n{span.allocated:,} bytes allocated"
    )


def _short(name: str, width: float) -> str:
    """As much of the end of a name as fits: it says more than the beginning."""
    room = int((width - 6) / _LETTER)
    if room < 3:
        return ""
    return name if len(name) <= room else "…" + name[-(room - 1) :]


def _colour(span: Span) -> str:
    """The same for the same name: modules yellow to red, operators green, backward blue."""
    shift = zlib.crc32(span.name.encode()) % 40
    hue = {"module": 20, "op": 95, "grad": 200}.get(span.kind, 0) + shift
    found = colorsys.hls_to_rgb(hue / 360, (68 + shift % 3 * 4) / 100, 0.7)
    return "#" + "".join(f"{round(255 * c):02x}" for c in found)
