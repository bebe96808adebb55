"""The examples in the docstrings of the package run."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from tests import docstrings
from votive import serve

STEMS = sorted(p.stem for p in Path(serve.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("stem", [s for s in STEMS if s != "__init__"])
def test_the_examples_of_a_file_hold(stem: str) -> None:
    docstrings.run_module(importlib.import_module(f"votive.serve.{stem}"))


@pytest.mark.parametrize("name", serve.__all__)
def test_every_public_name_is_described(name: str) -> None:
    assert inspect.getdoc(getattr(serve, name)), name
