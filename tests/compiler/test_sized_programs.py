"""Random programs that compute with sizes, compiled for any size, do what they do eagerly at each of several sizes.

The suite tries some. `VOTIVE_SIZED_PROGRAMS=2000 python -m pytest tests/compiler/test_sized_programs.py` tries that
many, `VOTIVE_SIZED_PROGRAMS=5000:5100` those with these seeds.
"""

from __future__ import annotations

import os
import warnings

import pytest

import votive

from .compare import Outcome, same
from .sized_programs import make

pytestmark = pytest.mark.usefixtures("interpreted")

_first, _, _last = os.environ.get("VOTIVE_SIZED_PROGRAMS", "300").rpartition(":")
SEEDS = range(int(_first or 0), int(_last))
TOGETHER = 10  # programs of one test
ALL = "VOTIVE_SIZED_PROGRAMS" in os.environ  # else every other program is tried with each way


@pytest.mark.parametrize("start", range(SEEDS.start, SEEDS.stop, TOGETHER))
def test_random_programs_do_what_they_do_eagerly_at_every_size(start: int) -> None:
    for seed in range(start, min(start + TOGETHER, SEEDS.stop)):
        text, fresh, inputs, written = make(seed)
        eager = fresh()
        modes = (True, None) if ALL else (True, None)[seed % 2 :][:1]
        programs = {d: votive.compile(fresh(), dynamic=d) for d in modes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated forms, and of programs that are compiled too often
            for call in (0, 0, 1, 2, 3, 4, 1):
                one = Outcome(eager, inputs.arguments(call), seed)
                for dynamic, compiled in programs.items():
                    other = Outcome(compiled, inputs.arguments(call), seed)
                    if written.halves:
                        one.grads = other.grads = []
                    try:
                        same(one, other, 1000.0 if written.halves else 1.0)
                    except AssertionError as e:
                        where = f"call {call} of program {seed}, dynamic={dynamic}, sizes {inputs.dims[call]}"
                        raise AssertionError(f"{where}: {e}\n{text[text.index('def program') :]}") from None
