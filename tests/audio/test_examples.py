"""Every public name of `votive.audio` has an example that runs as printed."""

from __future__ import annotations

import importlib.util

import pytest

import votive.audio.transforms
from tests import docstrings

SPACES = (votive.audio, votive.audio.functional, votive.audio.transforms)
# Names that read or write files.
FILES = {"info", "load", "save", "blocks", "Writer"}
FOUND = {f"{s.__name__}.{n}": getattr(s, n) for s in SPACES for n in s.__all__}


@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_example_of_a_public_name_runs_as_printed(name: str) -> None:
    if name.rsplit(".", 1)[-1] in FILES and importlib.util.find_spec("soundfile") is None:
        pytest.skip("the package soundfile is not installed")
    docstrings.run(name, FOUND[name].__doc__)
