"""`votive debug` in a real terminal: what is pasted, Ctrl-C, and addresses that match nothing."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.cli.keys import parted
from votive.glass.console import KEYS, Console

pty = pytest.importorskip("pty", reason="a terminal of its own needs a Unix system")

Run = Callable[..., tuple[int, str, str]]
NET = """
import time
import votive

class Slow(votive.nn.Module):
    def forward(self, x):
        time.sleep(0.05)
        return x + 1

def debug_case():
    return votive.nn.Sequential(*[Slow() for _ in range(400)]), votive.ones(2)
"""
STEP = next(k for k, v in KEYS.items() if v == "step")


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


class Terminal:
    """A program at a terminal of its own: what is written to it, and what it shows."""

    def __init__(self, *words: str) -> None:
        import fcntl
        import termios

        self.own, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "votive", *words],
            stdin=other,
            stdout=other,
            stderr=other,
            # Only a terminal that is the program's own sends it Ctrl-C.
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(other)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.own, text.encode())

    def until(self, mark: str, seconds: float = 60.0) -> str:
        """What is shown up to a text; what follows it is kept for the next time."""
        end = time.monotonic() + seconds
        while mark not in self.seen:
            left = max(0.0, end - time.monotonic())
            assert select.select([self.own], [], [], left)[0], f"no {mark!r} in {self.seen!r}"
            self.seen += os.read(self.own, 4096).decode(errors="replace")
        before, self.seen = self.seen.split(mark, 1)
        return before

    def ask(self, text: str) -> str:
        """What is shown between a line and the next prompt."""
        self.type(f"{text}\n")
        self.until(text)
        return self.until("(glass) ")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.own)


@pytest.fixture
def terminal(slow: Path) -> Iterator[Terminal]:
    made = Terminal("debug", "--script", str(slow), "--no-ops")
    try:
        made.until("(glass) ")
        yield made
    finally:
        made.close()


def test_every_line_that_is_pasted_is_run_and_the_last_one_can_be_ended(terminal: Terminal) -> None:
    terminal.type("step\nover\np value.sum().item()\np 40 +")
    assert "→ 0" in terminal.until("(glass) over")
    assert "← 0" in terminal.until("(glass) p value")
    assert "4.0" in terminal.until("p 40 +")
    terminal.type(" 2\n")
    terminal.until("42")
    terminal.until("(glass) ")


def test_keys_that_come_together_are_all_obeyed(terminal: Terminal) -> None:
    terminal.type(STEP * 3)
    for mark in ("→ 0", "← 0", "→ 1"):
        terminal.until(mark)
    terminal.until("(glass) ")


def test_what_is_pasted_into_a_line_that_was_begun_is_run(terminal: Terminal) -> None:
    terminal.type("p")
    terminal.until("p")
    time.sleep(0.3)
    terminal.type("\x1b[200~ 5 * 5\np 6 * 6\x1b[201~\n")
    terminal.until("\n25")
    terminal.until("36")
    terminal.until("(glass) ")


def test_ctrl_c_stops_the_run_where_it_is_and_keeps_it(terminal: Terminal) -> None:
    terminal.ask("step")
    terminal.type("c\n")
    time.sleep(1.0)
    terminal.type("\x03")
    terminal.until("Stopped by Ctrl-C.")
    place = terminal.until("(glass) ")
    assert "has ended" not in place
    index = int(place.split("event ")[1].split("]")[0])
    assert 1 < index < 800
    assert f"event {index + 1}]" in terminal.ask("step")


def test_ctrl_c_gives_up_an_expression_and_stays_at_the_prompt(terminal: Terminal) -> None:
    terminal.ask("step")
    terminal.type("p [0 for _ in iter(int, 1)]\n")
    time.sleep(0.5)
    terminal.type("\x03")
    terminal.until("Stopped by Ctrl-C.")
    assert "→ 0" in terminal.until("(glass) ")
    assert "42" in terminal.ask("p 42")


def test_ctrl_c_at_the_prompt_gives_up_the_line_and_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.ask("step")
    for begun in ("", "abc"):
        terminal.type(begun)
        time.sleep(0.3)
        terminal.type("\x03")
        terminal.until("the run is kept")
        terminal.until("(glass) ")
    assert "\n  0" in terminal.ask("w")
    terminal.type("\x04")
    assert terminal.process.wait(30) == 0


def test_a_second_ctrl_c_gives_up_the_move_and_the_run_is_repeated_up_to_there() -> None:
    def run(x: Any) -> Any:
        if armed:
            console.interrupt()  # the first: at the next event
            console.interrupt()  # the second: at once
        return x * 2

    class Net(votive.nn.Module):
        def forward(self, x: Any) -> Any:
            return self.last(run(self.first(x)))

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = votive.nn.Identity(), votive.nn.Identity()

    armed = False
    with votive.debug(Net(), votive.ones(1), ops=False) as d:
        console = Console(d)
        console.interruptible = True
        console.do("u first")
        console.do("set 5")
        armed = True
        assert console.do("c").startswith("Stopped by Ctrl-C.\n→ first")
        armed = False
        console.do("c")
        assert d.result.tolist() == [10.0]  # the change made before is kept


def test_ctrl_c_ends_a_program_that_has_no_terminal() -> None:
    class Net(votive.nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyboardInterrupt

    with votive.debug(Net(), votive.ones(1)) as d, pytest.raises(KeyboardInterrupt):
        Console(d).do("c")


@pytest.mark.parametrize(
    ("text", "commands", "begun", "ended"),
    [
        ("\n", [""], "", False),
        ("a\r\nb\rc\n", ["a", "b", "c"], "", False),
        ("é\u4e2d", [], "é\u4e2d", False),
        ("ab\x7fc", [], "ac", False),
        ("\x1b", [], "", False),
        ("\x1b[99~x\n", ["x"], "", False),
        ("\x1b[200~a\nb\x1b[201~", ["a"], "b", False),
        (f"{STEP}q\n", ["step", "q"], "", False),
        ("q\n\x04later", ["q"], "", True),
        ("\x00\x01", [], "", False),
    ],
)
def test_what_is_typed_is_taken_apart(text: str, commands: list[str], begun: str, ended: bool) -> None:
    assert parted(text, KEYS) == (commands, begun, ended)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("layers.99.mlp", "'layers.99.mlp' matches no call. Did you mean 'model.layers.1.mlp'"),
        ("layers.1.mpl", "model.layers.1.mlp"),
        ("/liner", "Did you mean 'linear'?"),
        ("/zzz", "Operators from here on: add"),
    ],
)
def test_an_address_that_matches_nothing_is_told_with_similar_ones(
    run: Run, model: Path, pattern: str, says: str
) -> None:
    words = ["debug", "Once", "--model", model]
    code, _, err = run(*words, "--until", pattern, "--commands", "q")
    assert code == 1
    assert says in err
    assert "has ended" not in err
    code, out, _ = run(*words, "--until", "layers.0", "--commands", f"u {pattern}; w; q")
    assert code == 0
    assert says.split("Did")[-1] in out
    assert out.rstrip().endswith("model.layers.0")  # it stands where it stood


def test_a_call_that_was_passed_is_not_said_to_be_missing(run: Run, model: Path) -> None:
    words = ["debug", "Once", "--model", model, "--until", "layers.1"]
    _, out, _ = run(*words, "--commands", "u layers.0; p 7; q")
    assert "no further call matches 'layers.0'; reset starts again" in out
    assert out.rstrip().endswith("7")


def test_a_breakpoint_on_nothing_is_refused(run: Run, model: Path) -> None:
    _, out, _ = run("debug", "Once", "--model", model, "--commands", "b layers.9.mlp; b; q")
    assert "'layers.9.mlp' matches no call. Did you mean" in out
    assert "no breakpoints" in out


def test_a_slip_in_a_command_is_answered_with_the_right_one(run: Run, model: Path) -> None:
    _, out, _ = run("debug", "Once", "--model", model, "--commands", "stpe; s x; jump -1; q")
    assert "There is no command 'stpe'. Did you mean 'step'?" in out
    assert "s takes an integer of at least 1, not 'x'." in out
    assert "jump takes an integer of at least 0, not '-1'." in out
