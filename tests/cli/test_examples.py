"""The examples in the docstrings of the command line run as printed."""

from __future__ import annotations

import pytest

import votive.cli
import votive.io.streamed
import votive.train.corpus
from tests import docstrings

MODULES = [votive.cli, *docstrings.modules_of(votive.cli), votive.io.streamed, votive.train.corpus]
EXAMPLES = docstrings.examples(MODULES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_runs_as_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    docstrings.run(name, EXAMPLES[name])
