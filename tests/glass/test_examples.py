"""Every example in a docstring of the engine runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import votive
from votive import glass

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(m.name for m in pkgutil.iter_modules(glass.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_file_run_as_printed(name: str) -> None:
    module = importlib.import_module(f"votive.glass.{name}")
    votive.manual_seed(0)
    failed, _ = doctest.testmod(module, extraglobs={"votive": votive}, optionflags=OPTIONS)
    assert failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in glass.__all__:
        assert (getattr(glass, name).__doc__ or "").strip(), name
