"""Native CPU kernels: C++ built for several instruction-set levels, the best chosen at start.

Knows arrays and specs, never Tensor. What it lacks is served by the reference kernels.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from .loader import module, reason

available = module is not None

pointwise: Any = None

if available:
    pointwise = importlib.import_module(f"{__name__}.pointwise")
    # Every other file here declares rows.
    _PARTS = {"loader", "rows", "pointwise", "program", "printing"}
    for _found in pkgutil.iter_modules(__path__):
        if _found.name not in _PARTS and not _found.name.startswith("_"):
            importlib.import_module(f"{__name__}.{_found.name}")

__all__ = ["available", "module", "pointwise", "reason"]
