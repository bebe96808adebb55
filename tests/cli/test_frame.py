"""The frame of the command line: help, errors, exit codes, what is imported when."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import cli
from votive.cli import COMMANDS, main, terminal

Run = Callable[..., tuple[int, str, str]]


def python(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120, **options)


def test_help_lists_every_command(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    for name, printed in COMMANDS.items():
        assert name in out
        assert printed.split()[0] in out


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(run: Run, name: str) -> None:
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "examples:" in out
    assert f"votive {name}" in out
    assert "--debug" in out


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_command_is_a_file_with_add_and_run(name: str) -> None:
    module = __import__(f"votive.cli.{name}", fromlist=["add"]).__dict__
    assert callable(module["add"])
    assert callable(module["run"])
    assert f"`votive {name}`" in module["__doc__"]


@pytest.mark.parametrize("words", [["no-such-command"], ["--oops"], ["inspect"], ["inspect", "x", "--no-such-option"]])
def test_wrong_usage_is_exit_code_2_and_points_to_help(run: Run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("votive: ")
    assert "--help" in err


def test_a_slip_in_the_name_of_a_command_is_answered_with_the_right_one(run: Run) -> None:
    assert "Did you mean 'inspect'?" in run("inspct", "x")[2]


def test_no_arguments_show_the_help(run: Run) -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert "commands:" in err


def test_a_terminal_that_lacks_characters_gets_others() -> None:
    found = python("-m", "votive", "explain", "gelu", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert found.returncode == 0, found.stderr


def test_options_are_not_guessed_from_their_beginning(run: Run) -> None:
    assert run("env", "--js")[0] == 2


def test_an_error_is_one_line_and_exit_code_1(run: Run, tmp_path: Path) -> None:
    code, out, err = run("inspect", tmp_path / "missing")
    assert (code, out) == (1, "")
    assert err.startswith("votive: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["--debug", "inspect", "x"], ["inspect", "x", "--debug"]])
def test_debug_shows_the_error_before_and_after_the_command(words: list[str]) -> None:
    with pytest.raises(FileNotFoundError):
        main(words)


def test_an_interrupted_command_is_exit_code_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.cli import env

    def interrupted(args: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(env, "run", interrupted)
    code, _, err = run("env")
    assert code == 130
    assert err == "\nStopped by Ctrl-C.\n"


def test_warnings_are_one_line_without_a_place(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from votive.cli import env

    def careful(args: Any) -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("take care", stacklevel=1)
        return 0

    monkeypatch.setattr(env, "run", careful)
    assert run("env")[2] == "votive: warning: take care\n"
    assert warnings.showwarning is not cli._warn


def test_version(run: Run) -> None:
    assert run("--version")[:2] == (0, f"votive {votive.__version__}\n")


def test_python_m_votive_is_the_same_program() -> None:
    found = python("-m", "votive", "--version")
    assert (found.returncode, found.stdout) == (0, f"votive {votive.__version__}\n")


HEAVY = [
    "rich",
    "tokenizers",
    "jinja2",
    "difflib",
    "asyncio",
    "greenlet",
    "votive.models",
    "votive.io",
    "votive.nn",
    "votive.train",
    "votive.serialization",
    "votive.generation",
    "votive.glass",
    "votive.studio",
    "votive.text",
]


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_imports_no_command_and_nothing_heavy(words: list[str]) -> None:
    code = (
        f"import sys\nfrom votive.cli import main\nmain({words!r})\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)\n"
        "print([m for m in sys.modules if m.startswith('votive.cli.')], file=sys.stderr)"
    )
    assert python("-c", code).stderr == "[]\n[]\n"


def test_the_help_of_no_command_imports_what_only_running_it_needs() -> None:
    code = (
        "import io, sys, contextlib\nfrom votive.cli import COMMANDS, main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    for name in COMMANDS:\n"
        "        main([name, '--help'])\n"
        f"        heavy = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "        assert not heavy, (name, heavy)"
    )
    assert python("-c", code).stderr == ""


def test_help_costs_little_more_than_the_import() -> None:
    code = (
        "import time, votive, os, sys, contextlib\nbegan = time.process_time()\n"
        "from votive.cli import main\n"
        "with contextlib.redirect_stdout(open(os.devnull, 'w')):\n    main(['--help'])\n"
        "print(time.process_time() - began, file=sys.stderr)"
    )
    found = python("-W", "ignore::ResourceWarning", "-c", code).stderr
    assert float(found) < 0.15


def test_a_closed_pipe_ends_a_command_without_noise() -> None:
    shell = f"'{sys.executable}' -m votive explain --list | head -1; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert found.stderr == ""
    assert found.stdout.splitlines()[-1] in ("141", "0")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (KeyError("no tensor 'w'"), "no tensor 'w'"),
        (FileNotFoundError(2, "No such file or directory", "x"), "x: No such file or directory"),
        (ValueError("first\nsecond"), "first\n  second"),
        (ValueError(), "ValueError (--debug shows where)"),
    ],
)
def test_errors_are_told_as_users_read_them(error: Exception, says: str) -> None:
    assert cli.error_message(error) == says


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.paint("x", "bold", Terminal()) == "\x1b[1mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert terminal.paint("x", "bold", Terminal()) == "x"


def test_json_has_no_numbers_that_json_lacks() -> None:
    value = {"a": float("nan"), "b": [float("inf"), 1.5], "c": votive.tensor([2])}
    assert terminal.json_line(value) == '{"a": "nan", "b": ["inf", 1.5], "c": [2]}'
