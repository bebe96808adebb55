"""Every public name of speech has an example, and every example runs as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import votive
import votive.speech

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def found() -> dict[str, Any]:
    """Modules, classes, functions and methods with an example, by dotted name."""
    out: dict[str, Any] = {}
    for info in pkgutil.iter_modules(votive.speech.__path__):
        module = importlib.import_module(f"votive.speech.{info.name}")
        out[info.name] = module
        for key, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                out[f"{info.name}.{key}"] = value
            if inspect.isclass(value):
                for method, fn in vars(value).items():
                    if inspect.isfunction(fn):
                        out[f"{info.name}.{key}.{method}"] = fn
    return {k: v for k, v in out.items() if ">>>" in (v.__doc__ or "")}


FOUND = found()


NAMES = [n for n in votive.speech.__all__ if callable(getattr(votive.speech, n))]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(votive.speech, name).__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    doc = inspect.cleandoc(FOUND[name].__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive, "np": np}, name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
