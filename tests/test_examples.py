"""Every example in a docstring of a public name runs and prints what it says."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import votive
from tests import docstrings
from votive.ops.registry import COMPOSITES, OPS


def _public() -> dict[str, str]:
    found = {
        n: i.doc
        for n, i in [*OPS.items(), *COMPOSITES.items()]
        if not i.name.startswith("_") and (i.namespaces or i.method or i.also)
    }
    spaces: list[Any] = [
        votive,
        votive.autograd,
        votive.autograd.functional,
        votive.cpu,
        votive.cuda,
        votive.cuda.nvtx,
        votive.cuda.profiler,
    ]
    for space in spaces:
        for name in dir(space):
            value = getattr(space, name)
            if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            if not (getattr(value, "__module__", "") or "").startswith("votive"):
                continue
            doc = inspect.cleandoc(value.__doc__ or "")
            if not doc.startswith("In-place form of"):  # its plain form has the example
                found.setdefault(f"{space.__name__}.{name}", doc)
    return found


DOCS = _public()


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_example_of_a_public_name_runs_as_printed(name: str) -> None:
    doc = DOCS[name]
    assert doc, f"{name} has no docstring"
    docstrings.run(name, doc)
