"""Finds and runs the examples in docstrings; a failure shows what was printed instead."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

import votive

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def modules_of(package: ModuleType) -> list[ModuleType]:
    """The modules that lie directly in a package."""
    return [importlib.import_module(f"{package.__name__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]


def defined_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """A module, its classes and functions, and the methods of its classes, by dotted name."""
    yield module.__name__, module
    for key, value in vars(module).items():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{module.__name__}.{key}", value
        for method, fn in vars(value).items() if inspect.isclass(value) else ():
            if inspect.isfunction(fn):
                yield f"{module.__name__}.{key}.{method}", fn


def examples(modules: Iterable[ModuleType]) -> dict[str, str]:
    """The docstrings with an example in these modules, by dotted name."""
    return {name: value.__doc__ for module in modules for name, value in defined_in(module) if has_example(value)}


def has_example(value: object) -> bool:
    """Whether the docstring of a value shows how to use it."""
    return ">>>" in (value.__doc__ or "")


def explained(value: object) -> bool:
    """Whether a value has an example; a docstring is enough for an exception."""
    return has_example(value) or (isinstance(value, type) and issubclass(value, Exception) and bool(value.__doc__))


def run(name: str, doc: str | None, *, options: int = OPTIONS, **scope: object) -> None:
    """Run the example of a docstring as a user would who pasted it: with votive and NumPy imported, nothing else."""
    names = {"votive": votive, "np": np, **scope}
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(doc or ""), names, name, None, 0)
    assert test.examples, f"{name} has no example"
    _run([test], options)


def run_module(module: ModuleType) -> int:
    """Run the examples of a module among its own names, private ones too; how many lines there were."""
    tests = doctest.DocTestFinder(exclude_empty=True).find(module, extraglobs={"votive": votive, "np": np})
    _run(tests, OPTIONS)
    return sum(len(test.examples) for test in tests)


def _run(tests: list[doctest.DocTest], options: int) -> None:
    votive.manual_seed(0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=options, verbose=False)
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
