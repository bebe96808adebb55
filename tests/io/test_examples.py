"""Every public name of io has an example that runs as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import votive
import votive.io

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = ["report", "loading", "formats", "source", "safetensors", "npy", "torch_file"]


def found() -> dict[str, Any]:
    """Classes, functions and methods of io with an example, by dotted name."""
    out: dict[str, Any] = {}
    for name in MODULES:
        module = importlib.import_module(f"votive.io.{name}")
        for key, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                out[f"{name}.{key}"] = value
            if inspect.isclass(value):
                for method, fn in vars(value).items():
                    if inspect.isfunction(fn):
                        out[f"{name}.{key}.{method}"] = fn
    return {k: v for k, v in out.items() if ">>>" in (v.__doc__ or "")}


FOUND = found()
PUBLIC = [(m, n) for m in MODULES for n in getattr(importlib.import_module(f"votive.io.{m}"), "__all__", [])]
PUBLIC += [("", n) for n in votive.io.__all__]


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_a_public_name_has_an_example(module: str, name: str) -> None:
    space = importlib.import_module(f"votive.io.{module}".rstrip("."))
    value = getattr(space, name)
    if inspect.isclass(value) and issubclass(value, Exception):
        assert value.__doc__
        return
    assert ">>>" in (value.__doc__ or ""), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    doc = inspect.cleandoc(FOUND[name].__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive, "np": np}, name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
