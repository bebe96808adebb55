"""Architectures of timm on votive: outputs, features, state dicts, and a training step are those of torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

PROGRAM = "timm_architectures"
pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("part", ["forward", "step"])
@pytest.mark.parametrize("name", keys(PROGRAM, "ARCHITECTURES"))
def test_an_architecture_of_timm_is_the_same(name: str, part: str) -> None:
    check(PROGRAM, f"{name}.{part}")
