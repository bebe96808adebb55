"""Runs one program with torch and with votive as torch, each in a process of its own, and compares what they answer.

The programs know nothing of votive. `VOTIVE_LIBRARIES_TORCH` and `VOTIVE_LIBRARIES_VOTIVE` name the interpreters where
the libraries are installed, this one if they are not given; the second needs no torch.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[2]

wanted = pytest.mark.skipif(
    os.environ.get("VOTIVE_LIBRARIES") != "1",
    reason="Libraries from PyPI are run on request: install them and set VOTIVE_LIBRARIES=1.",
)


def environment() -> dict[str, str]:
    """What both processes see: this checkout, nothing from the network, one thread."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }


def _run(command: list[str], out: Path) -> dict[str, Any] | str:
    """The arrays that a program writes, or what went wrong."""
    done = subprocess.run(command, env=environment(), cwd=PROGRAMS, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0 or not out.exists():
        return f"{' '.join(command[:4])} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    with np.load(out) as found:
        return {key: found[key] for key in found.files}


@functools.cache
def answers(program: str) -> tuple[dict[str, Any] | str, dict[str, Any] | str]:
    """What a program answers with torch and with votive, all cases at once: starting takes longer than they do."""
    theirs = os.environ.get("VOTIVE_LIBRARIES_TORCH", sys.executable)
    ours = os.environ.get("VOTIVE_LIBRARIES_VOTIVE", sys.executable)
    if theirs == sys.executable and importlib.util.find_spec("torch") is None:
        pytest.skip("There is no torch here to compare with; name an interpreter in VOTIVE_LIBRARIES_TORCH.")
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder) / "torch.npz", Path(folder) / "votive.npz"
        # What goes wrong is remembered, too: no case would fare better.
        want = _run([theirs, f"{program}.py", str(first)], first)
        got = _run([ours, "-m", "votive.torch", f"{program}.py", str(second)], second)
    return want, got


def _of(case: str, found: dict[str, Any]) -> dict[str, Any]:
    return {
        k.removeprefix(f"{case}/"): v for k, v in found.items() if k.startswith(f"{case}/") and k != f"{case}/seconds"
    }


def check(program: str, case: str, tolerance: float = 1e-4) -> None:
    """Fail where arrays of a case differ by more than `tolerance` of their largest value, or where one side failed."""
    sides = answers(program)
    for side in sides:
        if isinstance(side, str):
            pytest.fail(side)
    want, got = (_of(case, side) for side in sides if isinstance(side, dict))
    if "error" in want:
        pytest.fail(f"torch itself fails: {json.loads(str(want['error']))[1]}")
    if "error" in got:
        pytest.fail(f"votive fails: {json.loads(str(got['error']))[1]}")
    assert sorted(got) == sorted(want)
    for key, value in want.items():
        other = got[key]
        assert other.shape == value.shape, key
        assert other.dtype == value.dtype, key
        if value.dtype.kind in "fc":
            # Gradients that cancel out, such as those of biases before a softmax, are rounding alone.
            allowed = tolerance * np.abs(value[np.isfinite(value)]).max(initial=0) + 1e-6
            np.testing.assert_allclose(other, value, rtol=0, atol=allowed, err_msg=key)
        else:
            np.testing.assert_array_equal(other, value, err_msg=key)
