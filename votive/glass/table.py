"""Tables as figures: rows with names, of which some may lie inside others. Knows no meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from .canvas import LETTER, Canvas
from .plots import Figure, short

# Rows of a picture; a canvas in a browser scrolls, and may have more.
MOST = 200
_ROW = 18


@dataclass(frozen=True)
class Table(Figure):
    """Rows of texts and numbers; columns whose name begins with `>` are aligned to the right.

    `depths` says how far each row lies inside of others, `shares` how long the bar behind its first
    cell is, from 0 to 1.

    >>> from votive.glass.table import Table
    >>> table = Table(["name", ">n"], [["<a>", 1.5]])
    >>> "&lt;a&gt;" in table.svg(), "&lt;a&gt;" in table.html()
    (True, True)
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    title: str = ""
    note: str = ""
    depths: Sequence[int] | None = None
    shares: Sequence[float] | None = None

    def cells(self, most: int = MOST) -> list[list[str]]:
        """The first rows as texts."""
        found = [[cell(c) for c in row] for row in self.rows[:most]]
        if self.depths is not None:
            for row, depth in zip(found, self.depths, strict=False):
                row[0] = "\u2003" * depth + row[0]
        return found

    def footer(self, most: int = MOST) -> str:
        """What is said below the table."""
        more = len(self.rows) - most
        left = f"{most:,} of {len(self.rows):,} rows" if more > 0 else ""
        return "; ".join(filter(None, (self.note, left)))

    def canvas(self) -> Canvas:
        names = [c.removeprefix(">") for c in self.columns]
        rows = [[short(c, 100) for c in row] for row in self.cells()]
        widths = [LETTER * max([len(n), *(len(r[i]) for r in rows)]) + 18 for i, n in enumerate(names)]
        note, top = self.footer(), 30 if self.title else 8
        height = top + _ROW * (len(rows) + 1) + (26 if note else 8)
        wide = LETTER * max(len(self.title), len(note)) + 16
        canvas = Canvas(max(sum(widths) + 16, wide), height)
        canvas.text(8, 14, self.title)
        for i in range(min(len(rows), len(self.shares or ()))):
            share = min(max(self.shares[i], 0.0), 1.0) if self.shares else 0.0
            if share > 0:
                y = top + _ROW * (i + 1)
                canvas.rectangle(8, y + 2, (widths[0] - 8) * share, _ROW - 4, "#a8cfe8")
        for n, row in enumerate([names, *rows]):
            x = 8.0
            for width, name, text in zip(widths, self.columns, row, strict=True):
                right = name.startswith(">")
                at = x + width - 14 if right else x + 2
                canvas.text(at, top + _ROW * (n + 0.5), text, "end" if right else "start")
                x += width
        canvas.line(8, top + _ROW, 8 + sum(widths), top + _ROW)
        canvas.text(8, height - 12, note)
        return canvas

    def html(self) -> str:
        """A table that needs no script."""
        sides = ["right" if c.startswith(">") else "left" for c in self.columns]

        def line(tag: str, row: Sequence[str]) -> str:
            inner = "".join(
                f'<{tag} style="text-align: {s}; white-space: pre">{escape(c)}</{tag}>'
                for s, c in zip(sides, row, strict=True)
            )
            return f"<tr>{inner}</tr>"

        head = line("th", [c.removeprefix(">") for c in self.columns])
        body = "".join(line("td", row) for row in self.cells())
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        note = f"<p><small>{escape(self.footer())}</small></p>" if self.footer() else ""
        return f"{title}<table><thead>{head}</thead><tbody>{body}</tbody></table>{note}"


def cell(value: object) -> str:
    """A value in few letters.

    >>> from votive.glass.table import cell
    >>> cell(0.123456789), cell(12345), cell("a"), cell(None)
    ('0.1235', '12,345', 'a', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
