"""How exactly float32 is multiplied: torch's switches, and that kernels are chosen anew."""

from __future__ import annotations

import pytest

import votive
from votive.backends import base


@pytest.fixture(autouse=True)
def _as_before():
    yield
    votive.set_float32_matmul_precision("highest")


def test_precision_and_switch_are_one_setting() -> None:
    switch = votive.backends.cuda.matmul
    assert votive.get_float32_matmul_precision() == "highest"
    votive.set_float32_matmul_precision("medium")
    assert switch.allow_tf32 is True
    assert votive.get_float32_matmul_precision() == "medium"
    switch.allow_tf32 = False
    assert votive.get_float32_matmul_precision() == "highest"
    switch.allow_tf32 = True
    assert votive.get_float32_matmul_precision() == "high"


def test_what_is_no_setting_is_refused() -> None:
    with pytest.raises(RuntimeError, match="one of highest, high, medium"):
        votive.set_float32_matmul_precision("low")
    with pytest.raises(TypeError, match="expected a bool"):
        votive.backends.cuda.matmul.allow_tf32 = 1
    with pytest.raises(AttributeError, match="no switch"):
        votive.backends.cuda.matmul.allow_tf64 = True


def test_kernels_are_chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(base, "listeners", [heard.append])
    votive.set_float32_matmul_precision("high")
    votive.set_float32_matmul_precision("medium")
    assert heard == [""]
