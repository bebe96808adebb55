"""Families of transformers on votive: logits, greedy tokens, gradients and a step of Trainer are those of torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

PROGRAM = "transformers_families"
pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("part", ["forward", "generate", "step", "trainer"])
@pytest.mark.parametrize("family", keys(PROGRAM, "FAMILIES"))
def test_a_family_of_transformers_is_the_same(family: str, part: str) -> None:
    check(PROGRAM, f"{family}.{part}")
