"""Every example in a docstring of the engine runs and prints what it says."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from tests import docstrings
from votive import glass

MODULES = sorted(m.name for m in pkgutil.iter_modules(glass.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_file_run_as_printed(name: str) -> None:
    docstrings.run_module(importlib.import_module(f"votive.glass.{name}"))


def test_every_public_name_has_a_docstring() -> None:
    for name in glass.__all__:
        assert (getattr(glass, name).__doc__ or "").strip(), name


# The names of sessions, watch, profile and lockstep.
WITH_EXAMPLE = [
    "BadValue",
    "Cost",
    "Difference",
    "Finding",
    "Health",
    "Lockstep",
    "Outlook",
    "Profile",
    "Reading",
    "Replay",
    "Session",
    "SessionDiff",
    "SessionMismatch",
    "SessionNode",
    "Span",
    "Watch",
    "lockstep",
    "model_hash",
    "profile",
    "watch",
]


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_names_that_users_begin_with_have_an_example(name: str) -> None:
    assert name in glass.__all__
    assert docstrings.has_example(getattr(glass, name)), name
