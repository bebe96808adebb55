"""The debugger in the terminal: its commands, its keys, and what it shows."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import votive
from votive import nn
from votive.cli import main
from votive.glass import Console
from votive.glass.console import KEYS

SCRIPT = """
import votive
from votive import nn

def debug_case():
    layer = nn.Linear(2, 3)
    nn.init.ones_(layer.weight), nn.init.zeros_(layer.bias)
    return nn.Sequential(layer, nn.ReLU()), votive.ones(1, 2)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def session(*commands: str) -> tuple[Console, list[str]]:
    layer = nn.Linear(2, 3)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    console = Console(votive.debug(nn.Sequential(layer, nn.ReLU()), votive.ones(1, 2)))
    return console, [console.do(c) for c in commands]


def test_commands_move_as_their_names_say() -> None:
    console, shown = session("s", "n", "n", "o", "back 2", "jump 1", "u 1", "c")
    assert [text.splitlines()[0].split("  ")[0] for text in shown[:-1]] == [
        "→ 0",
        "← 0",
        "→ 1",
        "← (model)",
        "← 1/relu#0",
        "→ 0",
        "→ 1",
    ]
    assert shown[-1] == "the run has ended: float32 (1, 3)"
    console.d.close()


def test_values_are_shown_and_set() -> None:
    console, shown = session(
        "u 0", "n", "p", "p value.sum()", "set value * 2", "p", "set 7", "p", "zero", "p", "x", "i", "w"
    )
    assert shown[2] == "tensor([[2., 2., 2.]], grad_fn=<LinearBackward0>)"
    assert "6." in shown[3]
    assert "4., 4., 4." in shown[5]
    assert "7., 7., 7." in shown[7]
    assert "0., 0., 0." in shown[9]
    assert "mean 0" in shown[10]
    assert shown[11] == "0  float32 (1, 2)"
    assert shown[12] == "(model)\n  0"
    console.d.close()


def test_breakpoints_are_set_listed_and_removed() -> None:
    console, shown = session("b 1", "c", "b", "del 0", "b", "reset", "c")
    assert shown[1].startswith("→ 1")
    assert "hit 1 times" in shown[2]
    assert shown[4] == "no breakpoints"
    assert shown[6].startswith("the run has ended")
    console.d.close()


def test_mistakes_are_told_and_the_session_goes_on() -> None:
    console, shown = session("dance", "p 1/0", "set", "u", "back 0", "del 9", "skip", "n", "skip")
    assert shown[0].startswith("There is no command 'dance'")
    assert "division by zero" in shown[1]
    result = ("an expression is missing", "until what?", "of at least 1, not '0'", "no breakpoint '9'")
    assert all(mark in text for mark, text in zip(result, shown[2:6], strict=True))
    assert shown[7].startswith("the run has ended") or shown[7].startswith("← ")
    assert "has run already" in shown[8] or "has ended" in shown[8]
    console.d.close()


def test_a_script_is_debugged_from_the_command_line(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", "--script", str(script), "--until", "1", "--commands", "n; p; q"]) == 0
    assert "tensor([[2., 2., 2.]])" in capsys.readouterr().out


def test_wrong_use_is_told_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["debug"]) == 2
    assert "give a PROMPT" in capsys.readouterr().err
    empty = tmp_path / "empty.py"
    empty.write_text("")
    assert main(["debug", "--script", str(empty)]) == 2
    assert "debug_case" in capsys.readouterr().err


def test_the_keys_of_an_editor_drive_it_in_a_terminal(script: Path) -> None:
    own, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "votive", "debug", "--script", str(script)],
        stdin=other,
        stdout=other,
        stderr=other,
        close_fds=True,
        env={**os.environ, "TERM": "xterm", "VOTIVE_NATIVE": "0"},
    )
    os.close(other)
    text = b""

    def until(mark: bytes) -> None:
        nonlocal text
        while mark not in text:
            assert select.select([own], [], [], 60)[0], f"waited for {mark!r}, saw {text!r}"
            text += os.read(own, 4096)
        text = text.split(mark, 1)[1]

    into = next(k for k, v in KEYS.items() if v == "step")
    over = next(k for k, v in KEYS.items() if v == "over")
    try:
        until("→ (model)".encode())
        until(b"(glass) ")
        os.write(own, into.encode())
        until("→ 0".encode())
        until(b"(glass) ")
        os.write(own, over.encode())
        until("← 0".encode())
        until(b"(glass) ")
        os.write(own, b"q")
        until(b"q")
        os.write(own, b"\n")
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(own)
