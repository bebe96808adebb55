"""Random programs, compiled, do what they do eagerly: with other values, other shapes, other numbers, again.

The suite tries a few. `VOTIVE_PROGRAMS=2000 python -m pytest tests/compiler/test_random_programs.py` tries that many,
`VOTIVE_PROGRAMS=5000:5100` those with these seeds. VOTIVE_JIT=1 compiles their
regions with the C++ compiler, which takes most of the time.
"""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import pytest

import votive

from . import random_training as training
from .compare import Outcome, close, same
from .random_programs import make

pytestmark = pytest.mark.usefixtures("interpreted")

_first, _, _last = os.environ.get("VOTIVE_PROGRAMS", "60").rpartition(":")
SEEDS = range(int(_first or 0), int(_last))
# Where a program passes through half precision, compiled ones round less often: at most as if all were bfloat16.
HALF = 1000.0
# A compiled piece keeps and lets go of values together, and has no gradients of gradients: it says so.
REFUSALS = ("modified by an inplace", "second time", "gradients of gradients")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_does_what_it_does_eagerly(seed: int) -> None:
    text, fresh, inputs, written = make(seed)
    eager, compiled = fresh(), votive.compile(fresh())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecated forms, and of programs that are compiled too often
        for call in (0, 0, 1, 2, 3, 2, 1, 0):
            one = Outcome(eager, inputs.arguments(call), seed)
            other = Outcome(compiled, inputs.arguments(call), seed)
            if written.halves:
                one.grads = other.grads = []
            try:
                same(one, other, HALF if written.halves else 1.0)
            except AssertionError as e:
                raise AssertionError(
                    f"call {call} of program {seed}: {e}\n{text[text.index('def program') :]}"
                ) from None


def _same_training(eager: Any, compiled: Any) -> None:
    """What programs have trained is the same."""
    assert training.rates(eager) == pytest.approx(training.rates(compiled))
    for a, b in zip(training.held(eager), training.held(compiled), strict=True):
        assert (a is None) == (b is None), (a, b)
        if a is not None:
            close(a, b, 300)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_trains_as_it_does_eagerly(seed: int) -> None:
    text, fresh, inputs, written = training.make(seed)
    eager, plain = fresh(), fresh()
    compiled = votive.compile(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in (0, 0, 1, 2, 3, 2, 1, 0):
            one = Outcome(eager, inputs.arguments(call), seed)
            other = Outcome(compiled, inputs.arguments(call), seed)
            refused = any(r in o.error for r in REFUSALS for o in (one, other))
            for o in (one, other):
                o.error = re.sub(r"(\w+: )*trying to backward", "trying to backward", o.error)
            large = any(
                bool((t.detach().double().abs() > 1e4).any()) for t in one.outs + training.held(eager) if t is not None
            )
            if written.halves or refused or large:
                return  # rounding less often leads elsewhere in a few steps, and so does a pass that one has not made
            try:
                same(one, other, 10.0)
                _same_training(eager, plain)
            except AssertionError as e:
                raise AssertionError(
                    f"call {call} of program {seed}: {e}\n{text[text.index('def program') :]}"
                ) from None
