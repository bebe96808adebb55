"""Every public name of vision.models has an example, and every example runs as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import votive
import votive.vision.models

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def found() -> dict[str, Any]:
    """Modules, classes and functions with an example, by dotted name."""
    out: dict[str, Any] = {}
    for info in pkgutil.iter_modules(votive.vision.models.__path__):
        module = importlib.import_module(f"votive.vision.models.{info.name}")
        out[info.name] = module
        for key, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                out[f"{info.name}.{key}"] = value
    return {k: v for k, v in out.items() if ">>>" in (v.__doc__ or "")}


FOUND = found()


@pytest.mark.parametrize("name", votive.vision.models.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    value = getattr(votive.vision.models, name)
    assert inspect.ismodule(value) or ">>>" in (value.__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    doc = inspect.cleandoc(FOUND[name].__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive, "np": np}, name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
