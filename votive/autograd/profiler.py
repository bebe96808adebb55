"""`votive.autograd.profiler`: the older names of `votive.profiler`, imported when one is used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    found = getattr(import_module("votive.profiler.autograd"), name, None)
    if found is None or name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted(import_module("votive.profiler.autograd").__all__)
