"""Programs about modules, hooks, states, containers and nn.utils say the same when they are compiled."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import votive
from tests.nn.test_programs import PROGRAMS
from tests.nn.transcript import run
from votive.core.mode import mode

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_says_the_same_compiled(program: Any) -> None:
    want = run(program, votive)
    compiled = votive.compile(program)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="compile: .* was compiled")
        for _ in range(3):
            assert run(compiled, votive) == want
    assert mode.module_path == ""
