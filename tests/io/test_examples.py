"""Every public name of io has an example that runs as printed."""

from __future__ import annotations

import importlib

import pytest

import votive.io
from tests import docstrings

MODULES = ["report", "loading", "formats", "source", "safetensors", "npy", "torch_file"]


FOUND = docstrings.examples(importlib.import_module(f"votive.io.{m}") for m in MODULES)
PUBLIC = [(m, n) for m in MODULES for n in getattr(importlib.import_module(f"votive.io.{m}"), "__all__", [])]
PUBLIC += [("", n) for n in votive.io.__all__]


@pytest.mark.parametrize(("module", "name"), PUBLIC)
def test_a_public_name_has_an_example(module: str, name: str) -> None:
    space = importlib.import_module(f"votive.io.{module}".rstrip("."))
    value = getattr(space, name)
    assert docstrings.explained(value), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    docstrings.run(name, FOUND[name])
