"""Programs in the style of public examples print the same with torch and with votive as torch."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .pair import ROOT, environment, wanted

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def printed(command: list[str]) -> str:
    """What a program prints."""
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def same(ours: str, theirs: str, tolerance: float = 2e-3) -> None:
    """Fail unless two texts are equal but for numbers, and these agree to a part of `1 + |value|`."""
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
        assert math.isclose(float(a), float(b), rel_tol=tolerance, abs_tol=2e-5), (a, b)


@wanted
@pytest.mark.parametrize("name", NAMES)
def test_a_program_prints_what_it_prints_with_torch(name: str) -> None:
    theirs = os.environ.get("VOTIVE_LIBRARIES_TORCH", sys.executable)
    if theirs == sys.executable and importlib.util.find_spec("torch") is None:
        pytest.skip("There is no torch here to compare with.")
    path = str(SCRIPTS / f"{name}.py")
    same(printed([sys.executable, "-m", "votive.torch", path]), printed([theirs, path]))
