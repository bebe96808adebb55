"""Lines from a terminal in which an editor's debugging keys are commands. Knows no debugger."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping


def lines(prompt: str, keys: Mapping[str, str]) -> Iterator[str]:
    """Lines as they are typed; a key in `keys` is its command at once. Plain input elsewhere."""
    if not sys.stdin.isatty():
        yield from (line.rstrip("\n") for line in sys.stdin)
        return
    while True:
        try:
            yield _line(prompt, keys)
        except EOFError:
            return


def _line(prompt: str, keys: Mapping[str, str]) -> str:
    try:
        import readline
        import termios
        import tty
    except ImportError:  # no such terminal on this system: keys are typed as words
        return input(prompt)
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        # Before the prompt invites a key; what was typed ahead is kept.
        tty.setcbreak(file, termios.TCSANOW)
        sys.stdout.write(prompt)
        sys.stdout.flush()
        first = os.read(file, 16).decode(errors="replace")
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)
    sys.stdout.write("\r\x1b[K")
    if first in keys:
        print(f"{prompt}{keys[first]}")
        return keys[first]
    if first in ("\x04", ""):
        raise EOFError
    if first in ("\n", "\r"):
        return ""
    # What was typed so far stands at the beginning of an ordinary line, with editing and history.
    typed = "" if first.startswith("\x1b") else first
    readline.set_startup_hook(lambda: readline.insert_text(typed))
    try:
        return input(prompt)
    finally:
        with contextlib.suppress(Exception):
            readline.set_startup_hook()
