"""Every example in a docstring of the studio runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import votive
from votive import studio

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
MODULES = sorted(
    m.name for m in pkgutil.walk_packages(studio.__path__, "votive.studio.") if not m.name.endswith("__main__")
)


@pytest.mark.parametrize("name", ["votive.studio", *MODULES])
def test_the_examples_of_a_file_run_as_printed(name: str) -> None:
    if name.endswith(".widgets"):
        pytest.importorskip("anywidget")
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, extraglobs={"votive": votive}, optionflags=OPTIONS)
    assert failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in studio.__all__:
        assert (getattr(studio, name).__doc__ or "").strip(), name
