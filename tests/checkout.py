"""A copy of the repository that a test may write operators into, and how commands run in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# An editable install answers for its package before any folder is looked through, and would lead a copy's commands to
# the repository itself: Python runs this file when it starts.
LIKE_ANY_FOLDER = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "votive" not in getattr(f, "known_source_files", ())]
"""

ROOT = Path(__file__).resolve().parent.parent
# What declaring, computing and testing operators needs. The compiled modules stay behind: NumPy computes.
PARTS = """
votive scripts pyproject.toml docs/operators.md
tests/__init__.py tests/conftest.py tests/docstrings.py tests/test_layers.py tests/test_examples.py
tests/ops tests/cuda tests/native tests/alias/inventory.txt
"""


def copied(folder: Path) -> Path:
    """The repository's parts in a folder, with their bytecode: it stays valid and saves most of an import."""
    for part in PARTS.split():
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.so", "static"))
        else:
            shutil.copy(source, target)
    (folder / "sitecustomize.py").write_text(LIKE_ANY_FOLDER)
    found = run(folder, "-c", "import votive; print(votive.__file__)")
    assert found.stdout.strip() == str(folder / "votive" / "__init__.py"), found.stdout + found.stderr
    return folder


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a copy, without the compiled modules."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TRITON_INTERPRET", "VOTIVE", "PYTHONDONT"))}
    env = {**inherited, "VOTIVE_NATIVE": "0", "PYTHONPATH": str(folder), **environment}
    return subprocess.run([sys.executable, *words], cwd=folder, env=env, capture_output=True, text=True)


def check(folder: Path, name: str, *tests: str, **environment: str) -> str:
    """Run the tests that speak of an operator; what pytest printed last."""
    done = run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", name, *tests, **environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


def compile_for_gpu(folder: Path, name: str) -> None:
    """Compile the Triton kernel of an operator for a Hopper GPU that need not be there."""
    program = f"""
from tests.cuda.compiling import started
driver = started()
import votive
for dtype in (votive.float64, votive.float32, votive.bfloat16):
    votive.{name}(votive.empty(4, 5, device="cuda", dtype=dtype))
assert sum(kernel.startswith("_{name}") for kernel in driver.binaries) == 3, list(driver.binaries)
"""
    done = run(folder, "-c", program)
    assert done.returncode == 0, done.stderr[-4000:]
