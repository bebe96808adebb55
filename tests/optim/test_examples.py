"""Every example in the docstrings of votive.optim and votive.amp runs and prints what it says."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import votive
from tests import docstrings

SPACES: list[Any] = [votive.optim, votive.optim.lr_scheduler, votive.optim.swa_utils, votive.amp]
DOCS = {
    f"{space.__name__}.{name}": getattr(space, name).__doc__
    for space in SPACES
    for name in space.__all__
    if not inspect.ismodule(getattr(space, name))
}


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_example_of_a_public_name_runs_as_printed(name: str) -> None:
    docstrings.run(name, DOCS[name])
