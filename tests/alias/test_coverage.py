"""Every documented name of torch is here or refused, and the page says so."""

from __future__ import annotations

import re
from functools import cache

import pytest

from scripts.pages import torch_coverage
from votive.torch.refusals import REFUSALS

from .process import ROOT, run


@cache
def page() -> str:
    return torch_coverage.page()


def test_the_page_is_in_step_with_the_package() -> None:
    written = (ROOT / "docs" / "torch_coverage.md").read_text()
    assert written == page(), "run python scripts/generate.py"


def test_no_name_of_torch_is_missing() -> None:
    assert "## Missing" not in page(), page().partition("## Missing")[2]


def test_most_names_are_here() -> None:
    found = re.search(r"are here, ([\d.]+) % are", page())
    assert found is not None
    assert float(found[1]) >= 92


def test_refusals_are_sentences() -> None:
    for row in REFUSALS:
        assert row.reason.endswith("."), row
        assert not row.instead or row.instead.endswith("."), row


@pytest.mark.parametrize("page", ["torch_programs.md"])
def test_the_examples_of_the_page_run(page: str) -> None:
    blocks = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)
    assert blocks
    for block in blocks:
        # They install the alias themselves; here it is there already, which they do not mind.
        run(block)
