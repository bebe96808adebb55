"""`votive.autograd.profiler_util`: the classes of events of `votive.profiler`, imported when one is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("EventList", "FunctionEvent", "FunctionEventAvg", "Interval"):
        return getattr(import_module("votive.profiler.events"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
