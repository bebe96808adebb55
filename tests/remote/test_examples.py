"""The examples in the docstrings of the device elsewhere hold."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

import votive
from tests import docstrings

PACKAGE = Path(votive.__file__).parent
MODULES = ["remote"]
for _folder in ("remote/server", "backends/remote"):
    MODULES += [f"{_folder}/{p.stem}".replace("/", ".") for p in sorted((PACKAGE / _folder).glob("*.py"))]


@pytest.mark.parametrize("name", [n for n in MODULES if not n.endswith("__init__")])
def test_the_examples_of_a_file_hold(name: str) -> None:
    docstrings.run_module(importlib.import_module(f"votive.{name}"))


@pytest.mark.parametrize("name", votive.remote.__all__)
def test_every_public_name_is_described(name: str) -> None:
    assert inspect.getdoc(getattr(votive.remote, name))
