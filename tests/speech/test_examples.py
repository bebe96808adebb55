"""Every public name of speech has an example, and every example runs as printed."""

from __future__ import annotations

import pytest

import votive.speech
from tests import docstrings

FOUND = docstrings.examples(docstrings.modules_of(votive.speech))
NAMES = [n for n in votive.speech.__all__ if callable(getattr(votive.speech, n))]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    assert docstrings.has_example(getattr(votive.speech, name)), f"{name} has no example"


@pytest.mark.parametrize("name", sorted(FOUND))
def test_an_example_runs_as_printed(name: str) -> None:
    docstrings.run(name, FOUND[name])
