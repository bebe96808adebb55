"""Generated files are in step with the schemas they are made from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import votive
from scripts.pages import native_kernels, operators, stubs
from votive.backends.cpu import native

PACKAGE = Path(votive.__file__).parent


def test_the_type_stubs_are_in_step_with_the_schemas() -> None:
    assert (PACKAGE / "_operators.pyi").read_text() == stubs.operators_stub(), "run scripts/generate.py"


def test_the_types_of_the_package_are_in_step_with_its_init() -> None:
    assert (PACKAGE / "__init__.pyi").read_text() == stubs.package_stub(), "run scripts/generate.py"


def test_the_operator_reference_is_in_step_with_the_declarations() -> None:
    page = PACKAGE.parent / "docs" / "operators.md"
    assert page.read_text() == operators.page(), "run scripts/generate.py"


def test_the_page_of_native_kernels_is_in_step_with_the_kernel_table() -> None:
    if not native.available:
        pytest.skip(f"no native kernels: {native.reason}")
    page = PACKAGE.parent / "docs" / "native_kernels.md"
    assert page.read_text() == native_kernels.page(), "run scripts/generate.py"


def test_the_type_stubs_are_valid_python() -> None:
    compile((PACKAGE / "_operators.pyi").read_text(), "_operators.pyi", "exec")


def test_a_type_checker_finds_wrong_arguments_through_the_stubs(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text("import votive\nx: votive.Tensor = votive.zeros(2)\ny = votive.tanh(x)\nz = votive.tanh('no')\n")
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "--no-error-summary", str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_environment(),
    )
    lines = [line for line in result.stdout.splitlines() if "program.py" in line]
    assert any(":4:" in line and "error" in line for line in lines), result.stdout
    assert not any(":3:" in line and "error" in line for line in lines), result.stdout


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
