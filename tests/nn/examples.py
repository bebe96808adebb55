"""Finds the docstrings of a module's public classes, functions and methods."""

from __future__ import annotations

import inspect
from types import ModuleType


def examples(*modules: ModuleType) -> dict[str, str]:
    """Docstrings by name, of everything public that these modules define."""
    found: dict[str, str] = {}
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
                continue
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            label = f"{module.__name__}.{name}"
            found[label] = inspect.cleandoc(value.__doc__ or "")
            for method, fn in vars(value).items() if inspect.isclass(value) else ():
                doc = inspect.cleandoc(getattr(fn, "__doc__", None) or "")
                if not method.startswith("_") and ">>>" in doc:
                    found[f"{label}.{method}"] = doc
    return found
