"""einops' own tests pass on votive."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from .pair import environment, wanted

pytestmark = wanted


def test_the_tests_of_einops_pass(tmp_path: Path) -> None:
    python = os.environ.get("VOTIVE_LIBRARIES_VOTIVE", sys.executable)
    command = [python, "-m", "votive.torch", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "einops.tests"]
    given = {**environment(), "EINOPS_TEST_BACKENDS": "numpy,torch"}
    # Some of them start "python" again.
    given["PATH"] = os.pathsep.join([str(Path(python).parent), given.get("PATH", "")])
    # Elsewhere, so that our settings of pytest do not hold.
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None
    assert int(found[1]) > 50
