"""The examples in the docstrings of sessions, watch, profile and lockstep run."""

from __future__ import annotations

import doctest
import importlib

import pytest

import votive

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
STEMS = (
    "difference",
    "feeder",
    "flame",
    "health",
    "kv_store",
    "lockstep",
    "profile",
    "rendering",
    "session",
    "session_base",
    "session_diff",
    "session_file",
    "session_plan",
    "session_sampling",
    "session_script",
    "session_tree",
    "trace_export",
    "watch",
)
NAMES = (
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
)


@pytest.mark.parametrize("stem", STEMS)
def test_the_examples_of_a_file_hold(stem: str) -> None:
    module = importlib.import_module(f"votive.glass.{stem}")
    finder = doctest.DocTestFinder(exclude_empty=True)
    for test in finder.find(module, extraglobs={"votive": votive}):
        runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
        said: list[str] = []
        runner.run(test, out=said.append)
        assert not runner.failures, "".join(said)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    assert name in votive.glass.__all__
    assert ">>>" in (getattr(votive.glass, name).__doc__ or ""), name
