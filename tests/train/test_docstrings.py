"""Every public name of data, serialization and train has an example that runs as printed."""

from __future__ import annotations

import importlib

import pytest

from tests import docstrings

PACKAGES = ["votive.data", "votive.serialization", "votive.train"]
SPACES = [importlib.import_module(package) for package in PACKAGES]
EXAMPLES = docstrings.examples([*SPACES, *(module for space in SPACES for module in docstrings.modules_of(space))])
PUBLIC = sorted(f"{space.__name__}.{name}" for space in SPACES for name in space.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    package, _, attribute = name.rpartition(".")
    value = getattr(importlib.import_module(package), attribute)
    assert docstrings.explained(value), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_runs_as_printed(name: str) -> None:
    docstrings.run(name, EXAMPLES[name])
