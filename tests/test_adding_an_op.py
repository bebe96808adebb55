"""The files on the page about adding an operator make a working one, on NumPy, C++ and an emulated GPU."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from . import checkout
from .compiled_kernel import arrays_of, compiled

PAGE = (checkout.ROOT / "docs" / "adding_an_op.md").read_text()
FILES = dict(re.findall(r'```\w+ title="(.*?)"\n(.*?)```', PAGE, re.S))
NATIVE = "votive/backends/cpu/native/src/kernels/center.cpp"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which the page was followed."""
    folder = checkout.copied(tmp_path_factory.mktemp("repository"))
    (command,) = re.findall(r"^    python (-m votive.new_op .*)$", PAGE, re.M)
    done = checkout.run(folder, *shlex.split(command))
    assert done.returncode == 0, done.stdout + done.stderr
    written = re.findall(r"^wrote (.*)$", done.stdout, re.M)
    assert sorted(written) == sorted(FILES), "the page shows other files than the command writes"
    for name, text in FILES.items():
        (folder / name).write_text(text)
    done = checkout.run(folder, "scripts/generate.py")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_operator_passes_the_tests_that_the_page_names(repository: Path) -> None:
    named = re.search(r"^python -m pytest (tests/ops/test_catalog.py .*) -k center$", PAGE, re.M)
    assert named
    said = checkout.check(repository, "center", *named[1].split())
    assert int(re.findall(r"(\d+) passed", said)[0]) >= 10


def test_the_operator_stays_on_an_emulated_gpu(repository: Path) -> None:
    pytest.importorskip("triton")
    named = re.search(r"^(VOTIVE_CUDA=.*) python -m pytest (tests/cuda/.*) -k center$", PAGE, re.M)
    assert named
    environment = dict(pair.split("=") for pair in named[1].split())
    assert "passed" in checkout.check(repository, "center", named[2], **environment)


def test_the_kernel_in_triton_compiles(repository: Path) -> None:
    pytest.importorskip("triton")
    checkout.compile_for_gpu(repository, "center")


def test_the_kernel_in_c_plus_plus_centers(repository: Path, tmp_path: Path) -> None:
    kernel = compiled(repository / NATIVE, tmp_path)
    for dtype, tolerance in (("float64", 1e-14), ("float32", 1e-6), ("float16", 2e-3)):
        for x in arrays_of((4, 5, 7), dtype):
            for dim in range(3):
                out, wide = np.zeros_like(x), x.astype(np.float64)
                kernel("center", [out, x], (dim,))
                np.testing.assert_allclose(out, wide - wide.mean(dim, keepdims=True), rtol=tolerance, atol=tolerance)


def test_the_files_are_formatted_as_the_others_are(tmp_path: Path) -> None:
    pytest.importorskip("ruff")
    for name, text in FILES.items():
        if name.endswith(".py"):
            (tmp_path / Path(name).parent).mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    for words in (["check"], ["format", "--check"]):
        config = ["--config", str(checkout.ROOT / "pyproject.toml")]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, *config, str(tmp_path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
