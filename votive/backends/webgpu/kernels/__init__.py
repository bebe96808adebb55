"""Kernels by family, under the names of the files in `ops`. `load` imports them all, and gives operators without one
the CPU's.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from ...base import MUTATES, TABLE, add_row
from ..rows import fallback_row

# Operators about memory of the host, which has no form on a device.
_OF_THE_HOST = frozenset(["_pin_memory", "_empty_pinned"])
_loaded = False


def load() -> None:
    """Import every file with rows; operators without one get the row of last resort."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for found in pkgutil.walk_packages(__path__, f"{__name__}."):
        import_module(found.name)
    for op, where in list(TABLE):
        if where == "cpu" and op not in _OF_THE_HOST:
            add_row(fallback_row(op, MUTATES[op]() if op in MUTATES else frozenset()))
