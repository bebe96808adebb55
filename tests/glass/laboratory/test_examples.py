"""Every example in a docstring of the laboratory runs and prints what it says."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests import docstrings
from votive.glass import circuits, features, probes, steering

PACKAGES = (circuits, features, probes, steering)
MODULES = sorted(f"{p.__name__}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules(p.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_file_run_as_printed(name: str) -> None:
    docstrings.run_module(importlib.import_module(name))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_every_public_name_has_a_docstring(package: object) -> None:
    for name in package.__all__:  # type: ignore[attr-defined]
        assert (getattr(package, name).__doc__ or "").strip(), name
