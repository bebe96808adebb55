"""The example reads MNIST's own test images; skipped where its files are missing.

VOTIVE_MNIST names the folder with the four idx files, packed or not. A minute on two cores.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("VOTIVE_MNIST")


@pytest.mark.skipif(not FOLDER, reason="set VOTIVE_MNIST to the folder with MNIST's four idx files")
def test_the_example_reads_ninety_nine_of_a_hundred_real_digits() -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(ROOT / "examples" / "mnist.py"), "--data", str(FOLDER)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = re.search(r"accuracy ([\d.]+) of ([\d,]+)  .* processor ([\d.]+)", done.stdout)
    assert found is not None, done.stdout
    accuracy, images, seconds = (float(g.replace(",", "")) for g in found.groups())
    assert images == 10_000
    assert accuracy >= 0.99
    assert seconds < 2 * 180, "two cores have three minutes"
