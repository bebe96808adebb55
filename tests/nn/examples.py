"""Finds and runs the examples in docstrings of a module, its classes and their methods."""

from __future__ import annotations

import doctest
import inspect
from types import ModuleType
from typing import Any

import votive

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


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


def failures(name: str, doc: str) -> str:
    """What differs from the printed text when the example runs; empty if nothing does."""
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive}, name, None, 0)
    votive.manual_seed(0)
    report: list[str] = []
    runner: Any = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.append)
    return "".join(report)
