"""The examples in the docstrings of the GGUF and llama2.c readers run as printed."""

from __future__ import annotations

import doctest
import importlib
import inspect

import numpy as np
import pytest

import votive
import votive.io

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = [
    "io.gguf.bits",
    "io.gguf.file",
    "io.gguf.quants",
    "io.gguf.split",
    "io.gguf.types",
    "io.gguf.values",
    "io.gguf.writer",
    "io.llama2c",
    "io.rotary",
    "models.gguf_config",
    "models.gguf_families",
    "models.gguf_names",
    "models.gguf_types",
    "models.refitted",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run_as_printed(name: str) -> None:
    module = importlib.import_module(f"votive.{name}")
    space = {"votive": votive, "np": np}
    tests = doctest.DocTestFinder().find(module, extraglobs=space)
    assert sum(len(t.examples) for t in tests)
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    report: list[str] = []
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("name", ["io.gguf", "io.llama2c"])
def test_every_public_function_and_class_has_an_example(name: str) -> None:
    module = importlib.import_module(f"votive.{name}")
    for public in module.__all__:
        value = getattr(module, public)
        if inspect.isfunction(value) or public in ("GGUFFile", "Value", "Llama2cFile"):
            assert ">>>" in value.__doc__, public
