"""Flame graphs as SVG: a box for each call, as wide as its time, below it what it calls."""

from __future__ import annotations

import zlib
from typing import Any
from xml.sax.saxutils import escape

_ROW = 18
_LETTER = 6.6  # width of a letter, about
_TOP = 34
# Boxes narrower than this cannot be seen.
_LEAST = 0.3


def flame(root: Any, *, width: int = 1200, title: str = "") -> str:
    """The calls below `root` as a flame graph that hangs down; times are in the tooltips.

    >>> from votive.glass.flame import flame
    >>> from votive.glass.profile import Span
    >>> run = Span("", "run", "module", seconds=1.0, children=[Span("a<b", "x", "op", seconds=0.5)])
    >>> "a&lt;b" in flame(run)
    True
    """
    if width < 100:
        raise ValueError(f"flame: width must be at least 100, got {width}.")
    whole = root.seconds
    boxes: list[str] = []
    depth = _place(root, 0.0, float(width), 0, whole, boxes)
    height = _TOP + depth * _ROW + 8
    head = title or f"{whole * 1e3:.3f} ms"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="monospace" font-size="11">',
        "<style>rect:hover{stroke:#000;stroke-width:1}text{pointer-events:none}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="8" y="20" font-size="13">{escape(head)}</text>',
        *boxes, "</svg>", "",
    ])  # fmt: skip


def _place(span: Any, left: float, width: float, row: int, whole: float, out: list[str]) -> int:
    """Draw a call and all inside it; gives the number of rows below and with it."""
    if width < _LEAST:
        return row
    out.append(_box(span, left, width, row, whole))
    deepest = row + 1
    at = left
    for child in span.children:
        share = width * child.seconds / span.seconds if span.seconds else 0.0
        deepest = max(deepest, _place(child, at, share, row + 1, whole, out))
        at += share
    return deepest


def _box(span: Any, left: float, width: float, row: int, whole: float) -> str:
    name = span.address or span.name
    share = 100 * span.seconds / whole if whole else 0.0
    tip = (
        f"{name} ({span.name})\n{span.seconds * 1e3:.3f} ms, {share:.1f} %\n"
        f"own {span.own * 1e3:.3f} ms\n{span.allocated:,} bytes allocated"
    )
    top = _TOP + row * _ROW
    short = _short(name, width)
    text = f'<text x="{left + 3:.2f}" y="{top + 13}">{escape(short)}</text>' if short else ""
    return (
        f'<g><title>{escape(tip)}</title><rect x="{left:.2f}" y="{top}" width="{width:.2f}" '
        f'height="{_ROW - 1}" fill="{_colour(span)}" rx="1"/>{text}</g>'
    )


def _short(name: str, width: float) -> str:
    """As much of the end of a name as fits: it says more than the beginning."""
    room = int((width - 6) / _LETTER)
    if room < 3:
        return ""
    return name if len(name) <= room else "…" + name[-(room - 1) :]


def _colour(span: Any) -> str:
    """The same for the same name: modules yellow to red, operators green, backward blue."""
    turn = zlib.crc32(span.name.encode()) % 40
    base = {"module": 20, "op": 95, "grad": 200}.get(span.kind, 0)
    return f"hsl({base + turn},70%,{68 + turn % 3 * 4}%)"
