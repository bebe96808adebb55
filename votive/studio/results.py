"""Results of the glass engine for notebooks and saved pages: their pictures as plain values.

Knows figures by their fields, and no result by name.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.plain import plain
from ..glass.debugger import Debugger
from ..glass.display import Displayable
from ..glass.heatmap import Heatmap
from ..glass.table import Table

if TYPE_CHECKING:
    from ..glass.plots import Figure


# Cells of a heat map, rows of a table and names of a chart that are sent.
CELLS, ROWS, NAMES = 1 << 16, 2000, 2000
# What can be done with a debugger from its widget.
MOVES = ("run", "over", "step", "out", "back")
# Bytes of all pictures in one saved page.
PAGE = 8 << 20


def figure_json(figure: Figure) -> dict[str, Any]:
    """A figure as plain values; of a large one less is told, and that is said in its note.

    >>> from votive.glass.plots import Bars
    >>> from votive.studio.results import figure_json
    >>> fields = figure_json(Bars([float("nan"), 1.0], ["a", "b"]))
    >>> fields["kind"], fields["values"]
    ('bars', [None, 1.0])
    """
    kind = type(figure).__name__.lower()
    if isinstance(figure, Heatmap):
        return _heatmap(figure)
    fields = {"kind": kind, **figure.to_dict()}
    if isinstance(figure, Table):
        fields["rows"] = [[_cell(c) for c in row] for row in figure.rows[:ROWS]]
        fields["depths"] = None if figure.depths is None else list(figure.depths[:ROWS])
        fields["shares"] = None if figure.shares is None else plain(list(figure.shares[:ROWS]), null=True)
        fields["note"] = figure.footer(ROWS)
        return fields
    found: dict[str, Any] = plain(fields, null=True)
    return found


def _heatmap(figure: Heatmap) -> dict[str, Any]:
    rows = min(len(figure.rows), 1024)
    small = figure.within(rows, max(1, CELLS // max(rows, 1)))
    low, high = small.bounds()
    with np.errstate(over="ignore"):  # what float32 does not hold is infinite
        values = np.asarray(small.values, np.float64).astype("<f4")
    return {
        "kind": "heatmap",
        "title": small.title,
        "note": small.note,
        "legend": small.legend,
        "rows": [str(r) for r in small.rows],
        "columns": [str(c) for c in small.columns],
        "base64": base64.b64encode(values.tobytes()).decode(),
        "row_marks": _marks(small.row_marks),
        "column_marks": _marks(small.column_marks),
        "signed": small.signed,
        "low": low,
        "high": high,
        "cells": None if small.cells is None else [list(r) for r in small.cells],
        "tips": None if small.tips is None else [list(r) for r in small.tips],
    }


def _marks(marks: Sequence[str] | None) -> list[str] | None:
    return None if marks is None else [str(m) for m in marks]


def _cell(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, (bool, int)) else str(value)[:500]


def picture_json(thing: Displayable, name: str | None) -> list[dict[str, Any]]:
    """All figures of a picture."""
    return [figure_json(f) for f in thing.figures(name)]


def result_json(thing: Displayable, *, whole: bool = False) -> dict[str, Any]:
    """Names of the pictures, and the first of them; or as many as a page holds."""
    names = list(thing.pictures())
    found: dict[str, Any] = {}
    used, missing = 0, 0
    for name in names if whole else names[:1]:
        one = picture_json(thing, name)
        used += len(json.dumps(one))
        if used > PAGE and found:
            missing = len(names) - len(found)
            break
        found[name] = one
    said = ""
    if missing:
        said = f"{missing:,} of {len(names):,} pictures are not in this page: it would be too large"
        names = list(found)
    moves = list(MOVES) if isinstance(thing, Debugger) and not whole else []
    return {"title": type(thing).__name__, "names": names, "pictures": found, "missing": said, "moves": moves}


def move_debugger(thing: object, name: str) -> dict[str, Any]:
    """Move a debugger, and tell where it stands then."""
    if not isinstance(thing, Debugger) or name not in MOVES:
        raise ValueError(f"there is no move {name!r} of a {type(thing).__name__}.")
    if thing.ended and name != "back":
        raise RuntimeError("the run has ended; go back to look at it.")
    getattr(thing, name)()
    return result_json(thing)
