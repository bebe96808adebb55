"""TransformerLens and nnsight on votive: caches, hooks, decompositions, traces and patches are those of torch."""

from __future__ import annotations

import pytest

from .cases import keys
from .pair import check, wanted

PROGRAM = "looking_inside"
LENS = [*keys(PROGRAM, "KINDS"), "hooks", "decompose", "generation", "processed"]
pytestmark = [wanted, pytest.mark.parity]


@pytest.mark.parametrize("case", [*(f"lens.{name}" for name in LENS), "nnsight.trace", "nnsight.language"])
def test_what_is_seen_inside_is_the_same(case: str) -> None:
    check(PROGRAM, case)
