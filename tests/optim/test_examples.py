"""Every example in the docstrings of votive.optim and votive.amp runs and prints what it says."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import pytest

import votive

SPACES: list[Any] = [votive.optim, votive.optim.lr_scheduler, votive.optim.swa_utils, votive.amp]
DOCS = {
    f"{space.__name__}.{name}": inspect.cleandoc(getattr(space, name).__doc__ or "")
    for space in SPACES
    for name in space.__all__
    if not inspect.ismodule(getattr(space, name))
}


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_example_of_a_public_name_runs_as_printed(name: str) -> None:
    test = doctest.DocTestParser().get_doctest(DOCS[name], {"votive": votive}, name, None, 0)
    assert test.examples, f"{name} has no example"
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
