"""What `votive.config` tells, and how the number of threads is set."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import votive
from votive import config
from votive.backends.cpu import native

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def the_number_of_threads_is_put_back() -> Iterator[None]:
    was, interop = votive.get_num_threads(), config._interop
    yield
    votive.set_num_threads(was)
    config._interop = interop


def python(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_show_names_versions_kernels_threads_and_how_to_change_them() -> None:
    votive.set_num_threads(3)
    text = votive.config.show()
    assert votive.__version__ in text
    assert np.__version__ in text
    assert "threads    3" in text
    assert "VOTIVE_NATIVE" in text
    assert "OMP_NUM_THREADS" in text
    assert native.reason in text
    if native.available:
        assert f"{native.module.level}: " in text
        assert native.module.compiler in text


def test_show_says_that_native_kernels_are_off() -> None:
    shown = python("import votive; print(votive.config.show())", VOTIVE_NATIVE="0")
    assert "none: switched off by VOTIVE_NATIVE=0" in shown


def test_the_command_line_shows_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    from votive.cli import main

    assert main(["env"]) == 0
    shown = capsys.readouterr().out
    assert config.show() in shown
    assert "public" in shown


def test_the_number_of_threads_can_be_set() -> None:
    for n in (1, 4, 2):
        votive.set_num_threads(n)
        assert votive.get_num_threads() == n
        x = votive.arange(300_000.0)
        assert (x + x).sum().item() == 2 * x.sum().item()


def test_the_threads_of_openblas_follow() -> None:
    openblas = config._openblas()
    if openblas is None:
        pytest.skip("NumPy has another BLAS")
    votive.set_num_threads(1)
    assert openblas[2]() == 1


@pytest.mark.parametrize("setter", [votive.set_num_threads, votive.set_num_interop_threads])
@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", None, True])
def test_what_is_no_positive_int_is_refused(setter: object, wrong: object) -> None:
    with pytest.raises(RuntimeError, match=r"expects an int|positive integer"):
        setter(wrong)  # type: ignore[operator]


def test_interop_threads_are_kept_and_set_once() -> None:
    assert votive.get_num_interop_threads() >= 1
    config._interop = None
    votive.set_num_interop_threads(5)
    assert votive.get_num_interop_threads() == 5
    with pytest.raises(RuntimeError, match="once"):
        votive.set_num_interop_threads(5)


@pytest.mark.parametrize("kernels", ["", "0"])
@pytest.mark.parametrize(("given", "threads"), [("1", 1), ("3", 3), ("", None), ("no", None)])
def test_the_environment_gives_the_number_of_threads(kernels: str, given: str, threads: int | None) -> None:
    got = python("import votive; print(votive.get_num_threads())", VOTIVE_NATIVE=kernels, OMP_NUM_THREADS=given)
    assert int(got) == (threads or len(os.sched_getaffinity(0)))
