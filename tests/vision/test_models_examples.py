"""Every public name of vision.models has an example, and every example runs as printed."""

from __future__ import annotations

import inspect

import pytest

import votive.vision.models
from tests import docstrings

FOUND = docstrings.examples(docstrings.modules_of(votive.vision.models))


@pytest.mark.parametrize("name", votive.vision.models.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    value = getattr(votive.vision.models, name)
    assert inspect.ismodule(value) or docstrings.has_example(value), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    docstrings.run(name, FOUND[name])
