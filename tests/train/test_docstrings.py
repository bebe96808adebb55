"""Every public name of data, serialization and train has an example that runs as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import votive

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PACKAGES = ["votive.data", "votive.serialization", "votive.train"]


def found() -> dict[str, Any]:
    """Public classes, functions and methods with a docstring, by dotted name."""
    out: dict[str, Any] = {}
    for package in PACKAGES:
        space = importlib.import_module(package)
        names = [package] + [f"{package}.{m.name}" for m in pkgutil.iter_modules(space.__path__)]
        for module in map(importlib.import_module, names):
            for name, value in vars(module).items():
                if getattr(value, "__module__", None) != module.__name__ or name.startswith("_"):
                    continue
                if inspect.isfunction(value) or inspect.isclass(value):
                    out[f"{module.__name__}.{name}"] = value
                if inspect.isclass(value):
                    for method, fn in vars(value).items():
                        if not method.startswith("_") and inspect.isfunction(fn):
                            out[f"{module.__name__}.{name}.{method}"] = fn
    return out


FOUND = found()
EXAMPLES = sorted(n for n, v in FOUND.items() if ">>>" in (v.__doc__ or ""))
PUBLIC = sorted(f"{package}.{name}" for package in PACKAGES for name in importlib.import_module(package).__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    package, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(package), attribute)
    if inspect.isclass(value) and issubclass(value, Exception):
        assert value.__doc__
        return
    assert ">>>" in (value.__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_as_printed(name: str) -> None:
    doc = inspect.cleandoc(FOUND[name].__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive, "np": np}, name, None, 0)
    votive.manual_seed(0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
