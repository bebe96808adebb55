"""The examples in the docstrings of the package run."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from tests import docstrings
from votive import generation

STEMS = sorted(p.stem for p in Path(generation.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("stem", [s for s in STEMS if s != "__init__"])
def test_the_examples_of_a_file_hold(stem: str) -> None:
    if stem == "grammar":
        pytest.importorskip("llguidance", reason="forms are matched by llguidance")
    docstrings.run_module(importlib.import_module(f"votive.generation.{stem}"))


@pytest.mark.parametrize("name", generation.__all__)
def test_every_public_name_has_an_example(name: str) -> None:
    doc = inspect.getdoc(getattr(generation, name)) or ""
    assert ">>>" in doc or name == "GenerateOutput", name
