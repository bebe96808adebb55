"""scikit-learn and SciPy accept arrays of votive.np through the array-API standard."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from .pair import ROOT, environment, wanted


@wanted
def test_scikit_learn_and_scipy_compute_with_arrays_of_votive() -> None:
    for needed in ("sklearn", "scipy"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    command = [sys.executable, "-m", "tests.libraries.array_api_cases"]
    done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 200
    assert not [row for row in rows if not row[2].startswith("agrees")]
