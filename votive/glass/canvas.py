"""A canvas of rectangles, lines and texts, as SVG or PNG. Knows shapes, not what they mean.

Texts and lines are grey, which can be read on white and on black; an SVG has no background.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from ..train.png import encode, rgb, write

INK = "#767676"
LETTER = 8  # pixels from one letter to the next
# What a document of XML may not hold, in any form.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}


@dataclass
class Canvas:
    """Shapes in the order they are drawn; x goes right, y down.

    >>> from votive.glass.canvas import Canvas
    >>> canvas = Canvas(20, 10)
    >>> canvas.rectangle(0, 0, 5, 5, "#0072b2")
    >>> canvas.svg().count("<rect"), canvas.png()[1:4]
    (1, b'PNG')
    """

    width: float
    height: float
    shapes: list[tuple[Any, ...]] = field(default_factory=list)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str, tip: str = "") -> None:
        """A filled rectangle; `tip` is shown by browsers when one points at it."""
        self.shapes.append(("rectangle", x, y, width, height, colour, tip))

    def line(self, x0: float, y0: float, x1: float, y1: float, colour: str = INK, width: float = 1) -> None:
        self.shapes.append(("line", x0, y0, x1, y1, colour, width))

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", *, colour: str = INK, upright: bool = False
    ) -> None:
        """A text with its middle height at y; `upright` turns it to be read from below."""
        if text:
            self.shapes.append(("text", x, y, text, anchor, colour, upright))

    def image(self, x: float, y: float, width: float, height: float, pixels: np.ndarray) -> None:
        """A picture (rows, columns, 3) of bytes, drawn in this size without smoothing."""
        self.shapes.append(("image", x, y, width, height, pixels))

    def svg(self) -> str:
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} '
            f'{self.height:g}" width="{self.width:g}" height="{self.height:g}" '
            'font-family="ui-monospace, monospace" font-size="12">'
        ]
        for kind, *shape in self.shapes:
            parts.append(_SVG[kind](*shape))
        return "\n".join([*parts, "</svg>", ""])

    def png(self) -> bytes:
        pixels = np.full((round(self.height), round(self.width), 3), 255, np.uint8)
        for kind, *shape in self.shapes:
            _PNG[kind](pixels, *shape)
        return encode(pixels)


def stacked(pages: Sequence[Canvas], gap: float = 12) -> Canvas:
    """Pages below each other, as one.

    >>> from votive.glass.canvas import Canvas, stacked
    >>> stacked([Canvas(20, 10), Canvas(30, 10)]).height
    32
    """
    if len(pages) == 1:
        return pages[0]
    whole = Canvas(max((p.width for p in pages), default=1), 0)
    for canvas in pages:
        top = whole.height + (gap if whole.shapes or whole.height else 0)
        for kind, *shape in canvas.shapes:
            shape[1] += top
            if kind == "line":
                shape[3] += top
            whole.shapes.append((kind, *shape))
        whole.height = top + canvas.height
    return whole


def xml(text: str) -> str:
    """A text as a part of an XML document."""
    return escape(_NOT_XML.sub("\ufffd", text))


# --- SVG ------------------------------------------------------------------------------------------


def _svg_rectangle(x: float, y: float, w: float, h: float, colour: str, tip: str) -> str:
    inside = f"><title>{xml(tip)}</title></rect>" if tip else "/>"
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill={quoteattr(colour)}{inside}'


def _svg_line(x0: float, y0: float, x1: float, y1: float, colour: str, width: float) -> str:
    return f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke={quoteattr(colour)} stroke-width="{width:g}"/>'


def _svg_text(x: float, y: float, text: str, anchor: str, colour: str, upright: bool) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if upright else ""
    # A third of the letter size below the line brings the middle of letters onto it.
    drop = f' dx="0" dy="{12 / 3:g}"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}"{drop} text-anchor="{anchor}" fill={quoteattr(colour)}{turn}>{xml(text)}</text>'
    )


def _svg_image(x: float, y: float, w: float, h: float, pixels: np.ndarray) -> str:
    png = base64.b64encode(encode(np.ascontiguousarray(pixels))).decode()
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
        f'style="image-rendering: pixelated" href="data:image/png;base64,{png}"/>'
    )


_SVG: dict[str, Any] = {"rectangle": _svg_rectangle, "line": _svg_line, "text": _svg_text, "image": _svg_image}


# --- PNG ------------------------------------------------------------------------------------------


def _png_rectangle(pixels: np.ndarray, x: float, y: float, w: float, h: float, colour: str, tip: str) -> None:
    pixels[max(0, round(y)) : round(y + h), max(0, round(x)) : round(x + w)] = rgb(colour)


def _png_line(pixels: np.ndarray, x0: float, y0: float, x1: float, y1: float, colour: str, width: float) -> None:
    n = int(max(abs(x1 - x0), abs(y1 - y0))) * 2 + 1
    pen = np.arange(max(1, round(width))) - max(1, round(width)) // 2
    xs = np.rint(np.linspace(x0, x1, n)).astype(int)[:, None, None] + pen[:, None]
    ys = np.rint(np.linspace(y0, y1, n)).astype(int)[:, None, None] + pen[None, :]
    height, wide, _ = pixels.shape
    pixels[np.clip(ys, 0, height - 1), np.clip(xs, 0, wide - 1)] = rgb(colour)


def _png_text(pixels: np.ndarray, x: float, y: float, text: str, anchor: str, colour: str, upright: bool) -> None:
    # White paper lets texts be darker than the grey that must serve on black too.
    ink = "#333333" if colour == INK else colour
    shift = _ANCHORS[anchor] * (LETTER * len(text) - 2)
    if not upright:
        write(pixels, x - shift, y - 5, text, ink)
        return
    # A turned view of the canvas: what is written on it runs upwards.
    turned = np.rot90(pixels, -1)
    write(turned, pixels.shape[0] - y - shift, x - 5, text, ink)


def _png_image(pixels: np.ndarray, x: float, y: float, w: float, h: float, picture: np.ndarray) -> None:
    top, left, height, width = round(y), round(x), round(h), round(w)
    rows = np.arange(height) * picture.shape[0] // height
    columns = np.arange(width) * picture.shape[1] // width
    pixels[top : top + height, left : left + width] = picture[rows][:, columns]


_PNG: dict[str, Any] = {"rectangle": _png_rectangle, "line": _png_line, "text": _png_text, "image": _png_image}
