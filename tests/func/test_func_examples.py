"""The examples of votive.func, votive.fx, votive.overrides and of what autograd hands out run as printed."""

from __future__ import annotations

import pytest

from votive import func, fx, overrides
from votive.autograd import edges, function, graph, multi_grad_hooks, saved_hooks
from votive.fx import passes

from .. import docstrings

MODULES = [*docstrings.modules_of(func), *docstrings.modules_of(fx), *docstrings.modules_of(passes)]
DOCS = docstrings.examples([*MODULES, func, fx, overrides, graph, function, edges, multi_grad_hooks, saved_hooks])


@pytest.mark.parametrize("name", sorted(DOCS))
def test_an_example_prints_what_it_says(name: str) -> None:
    docstrings.run(name, DOCS[name])


def test_public_names_have_docstrings() -> None:
    for space in (func, fx, overrides):
        for name in space.__all__:
            assert (getattr(space, name).__doc__ or "").strip(), f"{space.__name__}.{name}"
