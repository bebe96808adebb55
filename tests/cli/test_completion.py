"""The scripts that complete commands are valid and complete what the parser knows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from votive.cli import COMMANDS, parser
from votive.cli.completion import bash, commands_of, fish, zsh

Run = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def completed(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    script = tmp_path / "votive.sh"
    script.write_text(bash(list(commands_of(parser()))))
    quoted = " ".join(f"'{w}'" for w in words)
    lines = (
        f"source '{script}'; COMP_WORDS=(votive {quoted}); COMP_CWORD={len(words)}; "
        'COMPREPLY=(); _votive; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    found = subprocess.run(["bash", "--norc", "-euc", lines], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert found.returncode == 0, found.stderr
    return [line for line in found.stdout.split("\n") if line]


def test_bash_completes_commands(tmp_path: Path) -> None:
    assert completed(tmp_path, "") == list(COMMANDS)
    assert completed(tmp_path, "ge") == ["generate"]
    assert completed(tmp_path, "--debug", "ins") == ["inspect"]


def test_bash_completes_options_of_the_command(tmp_path: Path) -> None:
    assert completed(tmp_path, "inspect", "--hist") == ["--histogram"]
    assert "--num-beams" in completed(tmp_path, "generate", "--")
    assert "--num-beams" not in completed(tmp_path, "chat", "--")
    assert completed(tmp_path, "--ver") == ["--version"]


def test_bash_completes_values(tmp_path: Path) -> None:
    assert completed(tmp_path, "convert", "--dtype", "fl") == ["float32", "float16", "float64"]
    assert completed(tmp_path, "convert", "--dtype", "=", "bf") == ["bfloat16"]
    assert completed(tmp_path, "inspect", "--sort", "") == ["file", "name", "size"]
    assert completed(tmp_path, "completion", "z") == ["zsh"]
    assert completed(tmp_path, "generate", "--seed", "") == []


def test_bash_completes_files(tmp_path: Path) -> None:
    (tmp_path / "model one.safetensors").touch()
    (tmp_path / "other").touch()
    assert completed(tmp_path, "inspect", "mod") == ["model one.safetensors"]
    assert completed(tmp_path, "inspect", "oth") == ["other"]
    assert completed(tmp_path, "generate", "--model", "oth") == ["other"]


def test_the_command_prints_each_script(run: Run) -> None:
    for shell, start in (("bash", "_votive"), ("zsh", "#compdef votive"), ("fish", "complete")):
        code, out, _ = run("completion", shell)
        assert code == 0
        assert start in out
        for name in COMMANDS:
            assert name in out
    assert run("completion", "cmd")[0] == 2


@pytest.mark.parametrize("make", [zsh, fish])
def test_quotes_in_help_do_not_end_the_strings_of_a_script(make: Callable[..., str]) -> None:
    text = make(list(commands_of(parser())))
    for line in text.splitlines():
        if not line.startswith("#"):
            plain = line.replace("'\\''", "").replace("\\'", "").replace("\\\\", "")
            assert plain.count("'") % 2 == 0, line


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_their_script(run: Run, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(run("completion", shell)[1])
    found = subprocess.run([shell, "-n", str(path)], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")
