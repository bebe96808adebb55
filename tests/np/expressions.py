"""Expressions that NumPy and votive.np must agree on: a file for each family, a line for each expression."""

from __future__ import annotations

from pathlib import Path

LINES = Path(__file__).parent / "lines"
EXPRESSIONS = {path.stem: path.read_text().splitlines() for path in sorted(LINES.glob("*.txt"))}
