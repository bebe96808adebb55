"""How results look: tables, colours, sizes, JSON, progress. Knows text; knows no command."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from ..core.plain import plain as plain

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def coloured(stream: TextIO | None = None) -> bool:
    """Whether a stream is a terminal that wants colours."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; one that was closed is None, and is none.

    >>> from votive.cli.terminal import is_terminal
    >>> is_terminal(None)
    False
    """
    return stream is not None and not getattr(stream, "closed", False) and stream.isatty()


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a style, or as it is where colours are not wanted.

    >>> from votive.cli.terminal import paint
    >>> paint("hello", "bold")
    'hello'
    """
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if coloured(stream) else text


def width() -> int:
    """How many characters fit in a line."""
    return shutil.get_terminal_size((100, 24)).columns


def size(nbytes: float) -> str:
    """A number of bytes in three digits.

    >>> from votive.cli.terminal import size
    >>> size(512), size(1536), size(3 * 2**30)
    ('512 B', '1.50 KiB', '3.00 GiB')
    """
    if nbytes < 1024:
        return f"{nbytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        nbytes /= 1024
        if nbytes < 1024 or unit == "TiB":
            break
    return f"{nbytes:.{2 if nbytes < 10 else 1 if nbytes < 100 else 0}f} {unit}"


def number(value: float | None, digits: int = 4) -> str:
    """A measured value, short.

    >>> from votive.cli.terminal import number
    >>> number(0.123456), number(3.0), number(None), number(float("nan"))
    ('0.1235', '3', '-', 'nan')
    """
    return "-" if value is None else f"{value:.{digits}g}"


def table(rows: Iterable[Sequence[Any]], headers: Sequence[str], *, right: str = "", indent: str = "") -> Iterator[str]:
    """Lines of aligned columns; `right` has an "r" where a column is one of numbers.

    >>> from votive.cli.terminal import table
    >>> print("\\n".join(table([("a", 1), ("bb", 20)], ["name", "size"], right="lr")))
    name  size
    a        1
    bb      20
    """
    cells = [[str(c) for c in row] for row in rows]
    widths = [max([len(h), *(len(row[i]) for row in cells)]) for i, h in enumerate(headers)]
    sides = [">" if right[i : i + 1] == "r" else "<" for i in range(len(headers))]

    def line(row: Sequence[str]) -> str:
        parts = (f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths))
        return (indent + "  ".join(parts)).rstrip()

    yield paint(line(headers), "bold")
    for row in cells:
        yield line(row)


def print_json(value: object) -> None:
    """One JSON document on stdout; numbers that JSON lacks become "nan", "inf" and "-inf"."""
    print(json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False))


def json_line(value: object) -> str:
    """One JSON document in a line.

    >>> from votive.cli.terminal import json_line
    >>> json_line({"x": float("inf"), "shape": (2, 3)})
    '{"x": "inf", "shape": [2, 3]}'
    """
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


def note(args: argparse.Namespace, text: str) -> None:
    """Something to know that is no result."""
    if not args.quiet:
        print(text, file=sys.stderr, flush=True)


class _Silent:
    def advance(self, amount: float = 1) -> None:
        pass

    def label(self, text: str) -> None:
        pass


class _Bar:
    def __init__(self, bar: Any, task: Any) -> None:
        self.bar, self.task = bar, task

    def advance(self, amount: float = 1) -> None:
        self.bar.advance(self.task, amount)

    def label(self, text: str) -> None:
        self.bar.update(self.task, name=text)


@contextmanager
def progress(args: argparse.Namespace, title: str, total: float | None, *, nbytes: bool = False) -> Iterator[Any]:
    """A bar on stderr, if that is a terminal, with `advance(amount)` and `label(text)`."""
    if args.quiet or not is_terminal(sys.stderr):
        yield _Silent()
        return
    from rich import progress as rich
    from rich.console import Console

    columns: list[Any] = [rich.TextColumn(title), rich.BarColumn()]
    columns += [rich.DownloadColumn()] if nbytes else [rich.MofNCompleteColumn()]
    columns += [rich.TimeRemainingColumn(), rich.TextColumn("{task.fields[name]}", markup=False)]
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar, bar.add_task("", total=total, name=""))
