"""The decoders that are compared, each with a configuration that shows what sets it apart."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import votive.models as models

from .compare import pair, transformers
from .rows import Row

# Each file beside `rows` has a table ROWS.
ROWS: dict[str, Row] = {}
for _file in sorted((Path(__file__).parent / "rows").glob("[a-z]*.py")):
    ROWS |= import_module(f"tests.models.rows.{_file.stem}").ROWS
EXPERTS = [name for name, row in ROWS.items() if any("experts" in key for key in row.settings)]


@cache
def models_of(name: str, dtype: str | None = None) -> tuple[Any, Any]:
    """Both models of a row; they are shared, so tests leave them as they are."""
    return fresh(name, dtype)


def fresh(name: str, dtype: str | None = None, train: bool = False) -> tuple[Any, Any]:
    """Both models of a row, made anew."""
    row = ROWS[name]
    config = getattr(transformers, row.config)(**row.settings)
    theirs = (getattr(transformers, row.theirs), config)
    return pair(theirs, getattr(models, row.ours), dtype=dtype, train=train)
