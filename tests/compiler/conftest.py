"""Most programs here are tried with regions in the interpreter: compiling C++ for each would take most of the time."""

from __future__ import annotations

import os

import pytest

from votive.backends.cpu import native


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile no C++, unless VOTIVE_JIT=1 asks for it."""
    if native.available and os.environ.get("VOTIVE_JIT") != "1":
        from votive.backends.cpu.native import jit

        monkeypatch.setattr(jit, "compiler", lambda: None)
