"""Adapters of peft, models that transformers saves and loads, and safetensors.torch on votive are those of torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

PROGRAM = "peft_adapters"
pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("name", [*keys(PROGRAM, "ADAPTERS"), "merge", "several", "pretrained", "files"])
def test_adapters_and_files_are_the_same(name: str) -> None:
    check(PROGRAM, name)
