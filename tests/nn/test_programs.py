"""Programs about modules, hooks, states, containers and nn.utils say the same with votive as with torch."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.core.mode import mode
from votive.nn import global_hooks

from . import container_programs, hook_programs, module_programs, parametrize_programs, state_programs, utils_programs
from .transcript import differences, run

FILES = (module_programs, hook_programs, state_programs, container_programs, utils_programs, parametrize_programs)
PROGRAMS = [program for file in FILES for program in file.PROGRAMS]
each = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)


@pytest.mark.parity
@each
def test_a_program_says_the_same_with_torch(program: Any) -> None:
    torch = pytest.importorskip("torch")
    assert differences(program, torch) == []


@each
def test_a_program_leaves_no_path_and_no_global_hook_behind(program: Any) -> None:
    assert run(program, votive)
    assert mode.module_path == ""
    assert not mode.noted
    assert type(mode.module_path) is str
    assert not global_hooks.GLOBAL
