"""Tables as text, by rich. Knows rows and columns, not what they mean."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as text; columns that begin with `>` are aligned to the right.

    >>> from votive.glass.text_table import table
    >>> print(table("", ["name", ">n"], [("a", 1), ("bb", 22)]))
    name    n
    a       1
    bb     22
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title or None, box=None, pad_edge=False, title_justify="left")
    for name in columns:
        right = name.startswith(">")
        made.add_column(name.removeprefix(">"), justify="right" if right else "left", no_wrap=True)
    for row in rows:
        # As plain text: an address may hold what rich would take for markup.
        made.add_row(*(Text(str(cell)) for cell in row))
    out = io.StringIO()
    Console(file=out, width=400, no_color=True, force_terminal=False).print(made)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def size(count: float) -> str:
    """A number of bytes for readers.

    >>> from votive.glass.text_table import size
    >>> size(100), size(2_000_000)
    ('100 B', '1.91 MiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024 or unit == "GiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    raise AssertionError
