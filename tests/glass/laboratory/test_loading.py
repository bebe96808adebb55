"""The laboratory is loaded when it is asked for, and not before."""

from __future__ import annotations

import subprocess
import sys

import votive


def test_the_laboratory_is_loaded_when_it_is_asked_for() -> None:
    program = """
import sys, votive
from votive import glass
assert not [m for m in sys.modules if m.startswith(("votive.glass.features", "votive.glass.probes"))]
assert glass.splice is glass.features.splice and "probes" in dir(glass)
glass.steering.Direction
try:
    glass.nothing
except AttributeError as e:
    assert "has no attribute 'nothing'" in str(e)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bundled_model_is_found_beside_its_features() -> None:
    assert votive.models.bundled() == ["tales"]
