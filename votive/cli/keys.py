"""Lines from a terminal in which an editor's debugging keys are commands. Knows no debugger."""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from .terminal import is_terminal

# Bytes that are taken at once; a longer paste is read in parts.
_MOST = 1 << 20
# Seconds in which what was pasted, or a key of several bytes, has come whole.
_WHOLE = 0.02
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)
_END = "\x04"  # Ctrl-D


def lines(prompt: str, keys: Mapping[str, str]) -> Iterator[str]:
    """Lines as they are typed or pasted; a key in `keys` is its command at once.

    Ctrl-C gives up the line and asks for another. Where there is no terminal, lines of the input.
    """
    if not is_terminal(sys.stdin):
        yield from (line.rstrip("\n") for line in sys.stdin or ())
        return
    begun = ""
    while True:
        try:
            found, begun, ended = _typed(prompt, keys, begun)
        except EOFError:
            return
        except KeyboardInterrupt:
            begun = ""
            print("\nCtrl-D or q leaves; the run is kept.")
            continue
        yield from found
        if ended:
            return


def parted(text: str, keys: Mapping[str, str]) -> tuple[list[str], str, bool]:
    r"""What was typed as commands, the beginning of a next line, and whether the input ended.

    >>> from votive.cli.keys import parted
    >>> parted("step\nover\np va", {"\x1b[15~": "run"})
    (['step', 'over'], 'p va', False)
    >>> parted("\x1b[15~\x1b[15~", {"\x1b[15~": "run"})
    (['run', 'run'], '', False)
    """
    done: list[str] = []
    line, at = "", 0
    while at < len(text):
        sign = text[at]
        if sign == "\x1b":
            # Keys that mean nothing here, and the signs around what is pasted, are left out.
            found = _SEQUENCE.match(text, at)
            assert found is not None
            if found.group() in keys:
                done.append(keys[found.group()])
            at = found.end()
            continue
        at += 1
        if sign in "\r\n":
            done.append(line)
            line = ""
            at += text.startswith("\r\n", at - 1)
        elif sign == _END and not line:
            return done, "", True
        elif sign in "\x7f\b":
            line = line[:-1]
        elif sign.isprintable() or sign == "\t":
            line += sign
    return done, line, False


def _typed(prompt: str, keys: Mapping[str, str], begun: str) -> tuple[Iterator[str], str, bool]:
    try:
        import readline
        import termios
        import tty
    except ImportError:  # no such terminal on this system: keys are typed as words
        return iter(input(prompt).split("\n")), "", False
    if not begun:
        text = _pressed(prompt, termios, tty)
        done, begun, ended = parted(text, keys)
        if done or ended:
            return _shown(prompt, done), begun, ended
    # What was typed so far stands at the beginning of an ordinary line, with editing and history.
    readline.set_startup_hook(lambda: readline.insert_text(begun))
    try:
        # What is pasted into it may hold several lines.
        return iter(input(prompt).split("\n")), "", False
    finally:
        with contextlib.suppress(Exception):
            readline.set_startup_hook()


def _shown(prompt: str, commands: list[str]) -> Iterator[str]:
    """Each command, written behind the prompt before it is run."""
    for command in commands:
        print(f"{prompt}{command}")
        yield command


def _pressed(prompt: str, termios: Any, tty: Any) -> str:
    """What is typed or pasted next, from its first byte to a pause."""
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        # Before the prompt invites a key; what was typed ahead is kept.
        tty.setcbreak(file, termios.TCSANOW)
        sys.stdout.write(prompt)
        sys.stdout.flush()
        taken = os.read(file, 4096)
        while taken and len(taken) < _MOST and select.select([file], [], [], _WHOLE)[0]:
            more = os.read(file, 4096)
            if not more:
                break
            taken += more
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
        sys.stdout.write("\r\x1b[K")
    return taken.decode(errors="replace") if taken else _END
