"""votive agrees with torch on a few of torch's OpInfo samples; the command line runs all."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")

from . import known
from .harness import MODES, OPS, OpReport, Settings, check
from .resolve import counterpart
from .subject import votive_subject

pytestmark = pytest.mark.parity

SUBJECT = votive_subject()
PRESENT = [name for name, op in OPS.items() if counterpart(SUBJECT, op) is not None]
SAMPLES = 5


def run(name: str, modes: tuple[str, ...]) -> OpReport:
    return check(OPS[name], Settings(modes=modes, max_samples=SAMPLES), SUBJECT)


@pytest.mark.parametrize("name", PRESENT)
def test_operator_agrees_with_torch(name: str) -> None:
    modes = tuple(mode for mode in MODES if (name, mode) not in known.EXCLUDED)
    failures = run(name, modes).failures
    if failures:
        shown = "\n".join(map(str, failures[:10]))
        again = f"python -m tests.parity.opinfo '{name}' --all -v"
        pytest.fail(f"{len(failures)} samples disagree:\n{shown}\n{again}", pytrace=False)


@pytest.mark.parametrize("name, mode", known.EXCLUDED)
def test_exclusion_is_still_needed(name: str, mode: str) -> None:
    assert run(name, (mode,)).failures, f"{name} agrees in {mode}: remove it from known.EXCLUDED"


@pytest.mark.parametrize("name", known.PROJECTED)
def test_projection_is_still_needed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(known.PROJECTED, name)
    reports = [run(key, ("grad",)) for key in PRESENT if OPS[key].name == name]
    assert any(r.failures for r in reports), f"{name} agrees: remove it from known.PROJECTED"
