"""Programs that use one feature of torch after another print on the alias what they print with torch.

What torch printed is stored beside them; where torch is installed, it is asked again.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from .process import ROOT

FOLDER = Path(__file__).parent / "programs"
RUNNER = Path(__file__).parent / "run_sections.py"
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NODE = re.compile(r"grad_fn=<[^>]*>")  # the names of nodes are votive's own


def _sections(text: str) -> dict[str, str]:
    return {name.strip(): body for name, _, body in (part.partition("\n") for part in text.split("### ")[1:])}


STORED = _sections((FOLDER / "features.printed.txt").read_text())


def _run(command: list[str], path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, str(path)], env=environment, cwd=path.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _same(ours: str, theirs: str) -> None:
    ours, theirs = NODE.sub("node", ours), NODE.sub("node", theirs)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
        assert math.isclose(float(a), float(b), rel_tol=2e-3, abs_tol=2e-5), (a, b)


@cache
def _printed() -> dict[str, str]:
    command = [sys.executable, "-m", "votive.torch", str(RUNNER)]
    return _sections(_run(command, FOLDER / "features.txt"))


@pytest.mark.parametrize("name", STORED)
def test_a_program_prints_what_torch_prints(name: str) -> None:
    _same(_printed()[name], STORED[name])


def _exported(folder: Path) -> Path:
    """The program that exports, as a file: dynamic sizes need its source."""
    path = folder / "program.py"
    path.write_text((FOLDER / "export.txt").read_text())
    return path


def test_exported_programs_run_with_guards_and_from_files(tmp_path: Path) -> None:
    ours = _run([sys.executable, "-m", "votive.torch"], _exported(tmp_path))
    _same(ours, (FOLDER / "export.printed.txt").read_text())


@pytest.mark.parity
def test_torch_prints_what_is_stored(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("There is no torch here to compare with.")
    theirs = _sections(_run([sys.executable, "-W", "ignore", str(RUNNER)], FOLDER / "features.txt"))
    assert list(theirs) == list(STORED)
    for name, text in theirs.items():
        _same(STORED[name], text)
    exported = _run([sys.executable, "-W", "ignore"], _exported(tmp_path))
    _same((FOLDER / "export.printed.txt").read_text(), exported)
