"""Every public name of models has an example, and every example runs as printed."""

from __future__ import annotations

import pytest

import votive.models
from tests import docstrings

FOUND = docstrings.examples(docstrings.modules_of(votive.models))


@pytest.mark.parametrize("name", votive.models.__all__)
def test_a_public_name_has_an_example(name: str) -> None:
    assert docstrings.has_example(getattr(votive.models, name)), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str, request: pytest.FixtureRequest) -> None:
    added = dict(votive.models.auto._ADDED)
    request.addfinalizer(lambda: votive.models.auto._ADDED.update(added))
    request.addfinalizer(votive.models.auto._ADDED.clear)
    docstrings.run(name, FOUND[name])
