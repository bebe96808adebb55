"""The examples in the docstrings of the package run."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import votive
from votive import generation

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
STEMS = sorted(p.stem for p in Path(generation.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("stem", [s for s in STEMS if s != "__init__"])
def test_the_examples_of_a_file_hold(stem: str) -> None:
    module = importlib.import_module(f"votive.generation.{stem}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(module, extraglobs={"votive": votive}):
        runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
        said: list[str] = []
        runner.run(test, out=said.append)
        assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", generation.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    doc = inspect.getdoc(getattr(generation, name)) or ""
    assert ">>>" in doc or name == "GenerateOutput", name
