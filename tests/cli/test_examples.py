"""The examples in the docstrings of the command line run as printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import votive
import votive.cli

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PARTS = [f"votive.cli.{m.name}" for m in pkgutil.iter_modules(votive.cli.__path__)]
MODULES = ["votive.cli", *PARTS, "votive.io.streamed", "votive.train.corpus"]


def examples() -> list[Any]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        found += [t for t in finder.find(module, name, module) if t.examples]
    return found


@pytest.mark.parametrize("test", examples(), ids=lambda t: t.name)
def test_an_example_runs_as_printed(test: Any, capfd: pytest.CaptureFixture[str]) -> None:
    test.globs = {"votive": votive, "np": np}
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
