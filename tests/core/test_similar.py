"""Names that are near one which is not known."""

from __future__ import annotations

import random

import pytest

from votive.core.similar import did_you_mean, similar
from votive.ops.registry import COMPOSITES, OPS

NAMES = sorted({n.rsplit(".", 1)[-1] for n in [*OPS, *COMPOSITES] if not n.startswith("_")})


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("gleu", "gelu"),
        ("sofmax", "softmax"),
        ("RELU", "relu"),
        ("matmull", "matmul"),
        ("layernorm", "layer_norm"),
        ("conv", "conv1d"),
        ("log_sofmtax", "log_softmax"),
    ],
)
def test_a_slip_finds_the_name(said: str, meant: str) -> None:
    assert meant in similar(said, NAMES)


def test_letters_that_changed_places_find_every_name_first() -> None:
    generator = random.Random(0)
    for name in (n for n in NAMES if len(n) > 3):
        at = generator.randrange(len(name) - 1)
        slip = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        letters = [n for n in NAMES if sorted(n) == sorted(name)]
        assert similar(slip, NAMES)[0] in letters


def test_a_letter_too_few_finds_every_name() -> None:
    generator = random.Random(0)
    for name in (n for n in NAMES if len(n) > 5):
        at = generator.randrange(len(name))
        slip = name[:at] + name[at + 1 :]
        assert slip in NAMES or name in similar(slip, NAMES, 12), slip


@pytest.mark.parametrize("said", ["", "x", "-", "qqqqqqqq", "🙂", "\ud800"])
def test_what_is_near_nothing_finds_nothing(said: str) -> None:
    assert similar(said, NAMES) == []
    assert did_you_mean(said, NAMES) == ""


def test_no_more_are_named_than_asked_for_and_none_twice() -> None:
    found = similar("conv", [*NAMES, *NAMES], 3)
    assert len(found) == len(set(found)) == 3


def test_several_are_told_with_an_or() -> None:
    assert did_you_mean("ab", ["abc", "abd"]) == " Did you mean 'abc' or 'abd'?"
