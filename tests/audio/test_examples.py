"""Every public name of `votive.audio` has an example that runs as printed."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
from typing import Any

import pytest

import votive
import votive.audio.transforms

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SPACES = (votive.audio, votive.audio.functional, votive.audio.transforms)
# Names that read or write files.
FILES = {"info", "load", "save", "blocks", "Writer"}


def _found() -> dict[str, Any]:
    return {f"{s.__name__}.{n}": getattr(s, n) for s in SPACES for n in s.__all__}


FOUND = _found()


@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_example_of_a_public_name_runs_as_printed(name: str) -> None:
    if name.rsplit(".", 1)[-1] in FILES and importlib.util.find_spec("soundfile") is None:
        pytest.skip("the package soundfile is not installed")
    doc = inspect.cleandoc(FOUND[name].__doc__ or "")
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive}, name, None, 0)
    assert test.examples, f"{name} has no example"
    votive.manual_seed(0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)
