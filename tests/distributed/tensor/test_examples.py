"""The examples in the docstrings of distributed tensors run."""

from __future__ import annotations

import pytest

import votive.distributed.tensor as package

from ...docstrings import examples, modules_of, run

EXAMPLES = examples(m for p in (package, package.parallel, package.experimental) for m in modules_of(p))


@pytest.mark.parametrize("name", EXAMPLES)
def test_docstring_examples(name: str) -> None:
    run(name, EXAMPLES[name])
