"""Which native module is loaded, what happens where there is none, and what an installer builds."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from votive.backends.cpu import native
from votive.backends.cpu.native.loader import LEVELS, built

ROOT = Path(__file__).parents[2]

# Counts warnings at import, then computes something whose answer is known.
PROBE = """
import sys, warnings
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import votive
    from votive.backends.cpu import native
x = votive.arange(12.0).view(3, 4).requires_grad_()
(x.softmax(1) @ x.t()).sum().backward()
total = (votive.arange(1000.0) * 2 + 1).sum().item()
assert total == 1000.0 ** 2, total
assert abs(x.grad.sum().item() - 9.0) < 1e-4, x.grad
print(getattr(native.module, "level", None), native.reason, len(caught), sep="|")
for w in caught:
    print(w.category.__name__, w.message)
"""
HIDE = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.rpartition(".")[2] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hidden())
"""


def test_every_kernel_file_bears_the_name_of_a_file_of_operators() -> None:
    ops = {p.stem for p in (ROOT / "votive" / "ops").glob("*.py")}
    for path in (ROOT / "votive" / "backends" / "cpu" / "native" / "src" / "kernels").glob("*.cpp"):
        assert any(path.stem == op or path.stem.startswith(f"{op}_") for op in ops), path.name


def run(before: str = "", env: dict[str, str] | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    given = {k: v for k, v in os.environ.items() if k != "VOTIVE_NATIVE"}
    paths = [str(ROOT), given.get("PYTHONPATH", "")]
    given["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(before=before)],
        env={**given, **(env or {})},
        text=True,
        capture_output=True,
        cwd=ROOT,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def test_a_missing_module_is_told_once_and_numpy_computes() -> None:
    done = run(HIDE.format(names=("_probe",)))
    level, reason, warnings = done.stdout.splitlines()[0].split("|")
    assert (level, warnings) == ("None", "1")
    assert "not built" in reason
    assert "RuntimeWarning votive: the native module was not built" in done.stdout
    assert "C++20 compiler" in done.stdout


def test_a_module_that_is_switched_off_is_no_reason_to_warn() -> None:
    done = run(HIDE.format(names=("_probe",)), {"VOTIVE_NATIVE": "0"})
    assert done.stdout == "None|switched off by VOTIVE_NATIVE=0|0\n"


def test_an_unknown_level_is_an_error_that_names_the_known_ones() -> None:
    done = run(env={"VOTIVE_NATIVE": "sse9"}, check=False)
    assert "VOTIVE_NATIVE must be 0 or one of baseline, avx2, avx512, got 'sse9'." in done.stderr


@pytest.mark.skipif(not native.available, reason=f"no native kernels: {native.reason}")
class TestLevels:
    @pytest.mark.parametrize("level", LEVELS)
    def test_a_level_can_be_asked_for(self, level: str) -> None:
        done = run(env={"VOTIVE_NATIVE": level}, check=False)
        best = __import__(f"{native.__name__}._probe", fromlist=["level"]).level()
        if LEVELS.index(level) > LEVELS.index(best):
            assert f"this processor's best level is {best}" in done.stderr
        elif level not in built():
            assert f"this installation holds {', '.join(built())}" in done.stderr
        else:
            assert done.stdout == f"{level}|VOTIVE_NATIVE={level}|0\n", done.stderr

    def test_the_best_level_is_taken_when_none_is_asked_for(self) -> None:
        level, reason, warnings = run().stdout.splitlines()[0].split("|")
        assert level in built()
        assert warnings == "0"
        assert "this processor" in reason

    def test_a_lower_level_serves_where_the_best_was_not_built(self) -> None:
        if len(built()) < 2:
            pytest.skip("one level was built")
        lower = (
            "from importlib import util\n"
            "find = util.find_spec\n"
            "util.find_spec = lambda n, p=None: None if n.endswith('_avx512') else find(n, p)\n"
        )
        level, _, warnings = run(lower).stdout.splitlines()[0].split("|")
        assert level == [n for n in built() if n != "avx512"][-1]
        assert warnings == "0"


installs = pytest.mark.skipif(
    not os.environ.get("VOTIVE_TEST_INSTALL"), reason="minutes long; set VOTIVE_TEST_INSTALL=1"
)


def wheel(tmp_path: Path, **env: str) -> tuple[list[str], str]:
    """Names inside a wheel that pip makes of this tree, and what pip printed."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-v",
            "--no-deps",
            "-w",
            str(tmp_path),
            "-C",
            f"build-dir={tmp_path}/build",
            str(ROOT),
        ],
        env={**os.environ, **env},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.whl")
    return zipfile.ZipFile(path).namelist(), done.stdout + done.stderr


@installs
def test_without_a_wish_the_level_of_this_processor_is_built(tmp_path: Path) -> None:
    names, _ = wheel(tmp_path)
    modules = sorted(n.split("/")[-1].split(".")[0] for n in names if n.endswith(".so"))
    best = __import__(f"{native.__name__}._probe", fromlist=["level"]).level()
    assert modules == [f"_native_{best}", "_probe"]


@installs
def test_a_level_that_there_is_not_is_refused(tmp_path: Path) -> None:
    names, said = wheel(tmp_path, VOTIVE_LEVELS="avx2,sse9")
    assert "VOTIVE_LEVELS must be all or some of" in said
    assert "got sse9" in said
    assert not [n for n in names if n.endswith(".so")]


@installs
def test_a_wheel_holds_every_level_and_no_sources(tmp_path: Path) -> None:
    names, _ = wheel(tmp_path, VOTIVE_LEVELS="all")
    modules = [n for n in names if n.endswith(".so")]
    assert len(modules) == 1 + len(LEVELS)
    assert not [n for n in names if n.endswith((".cpp", ".h", "CMakeLists.txt"))]


@installs
def test_without_a_compiler_a_pure_wheel_is_made_and_says_so(tmp_path: Path) -> None:
    names, output = wheel(tmp_path, CXX="/bin/false")
    assert not [n for n in names if n.endswith(".so")]
    assert output.count("the native kernels could not be built") == 1
