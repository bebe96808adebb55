"""Loads the kernels of every family, and gives what has none a way over the CPU."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..base import MUTATES, TABLE, add_row
from .rows import trip_rows

# Files that only an emulated GPU may import; importing the rest again costs nothing.
_EMULATED = frozenset(["__init__", "families", "host", "host_math", "interpret"])
# Operators about memory of the host, which has no form on a GPU.
_OF_THE_HOST = frozenset(["_pin_memory", "_empty_pinned"])
_loaded = False


def load() -> None:
    """Import every file with rows; operators without one get the row of last resort."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem not in _EMULATED:
            import_module(f"{__package__}.{file.stem}")
    for op, where in list(TABLE):
        if where == "cpu" and op not in _OF_THE_HOST:
            add_row(trip_rows(op, MUTATES[op]() if op in MUTATES else frozenset()))
