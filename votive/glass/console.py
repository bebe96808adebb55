"""A debugger in the terminal: commands by name, and the keys that editors have. Knows no model.

It reads commands from whatever gives lines, so that it can be scripted and tested.
"""

from __future__ import annotations

import shlex
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import votive

from ..core.similar import did_you_mean
from . import values
from .address import Pattern
from .debugger import Debugger
from .statistics import statistics
from .targets import NoMatch, modules_for

HELP = """\
moving                                            changing
  s, step    F11        into the next call          set EXPR   another value, e.g. set value * 2
  n, over    F10        over this call              zero       zeros instead of the value
  o, out     Shift-F11  out of this call            skip       do not run this call
  c, run     F5         to the next breakpoint      reset      undo all changes, start again
  u PATTERN             until a call that matches looking
  nan                   until a NaN or infinity     p [EXPR]   print the value, or an expression
  back [N]   Shift-F10  N events back               i          inputs of this call
  jump N                to event N                  w          the calls that are running
  b PATTERN  break at   b  list   del N  remove     x          statistics and histogram
  q quit                h, ?  this page"""

# What terminals send for the keys of an editor's debugger.
KEYS = {
    "\x1b[23~": "step",
    "\x1b[23;2~": "out",
    "\x1b[24~": "out",
    "\x1b[21~": "over",
    "\x1b[21;2~": "back",
    "\x1b[15~": "run",
    "\x1b[34~": "back",
}
_BARS = " ▁▂▃▄▅▆▇█"


class Console:
    """A debugger driven by commands; `do` runs one and gives what is to be shown."""

    def __init__(self, debugger: Debugger) -> None:
        self.d = debugger
        self.done = False
        self.interruptible = False  # whether Ctrl-C ends the command instead of the program
        self.stopped = False  # whether it has
        self.actions: dict[str, Callable[[str], str | None]] = {
            "step": self._step,
            "s": self._step,
            "over": self._over,
            "n": self._over,
            "next": self._over,
            "out": self._out,
            "o": self._out,
            "run": self._run,
            "c": self._run,
            "continue": self._run,
            "u": self._until,
            "until": self._until,
            "nan": self._nan,
            "back": self._back,
            "jump": self._jump,
            "b": self._break,
            "break": self._break,
            "del": self._delete,
            "set": self._set,
            "zero": self._zero,
            "skip": self._skip,
            "reset": self._reset,
            "p": self._print,
            "print": self._print,
            "i": self._inputs,
            "inputs": self._inputs,
            "w": self._where,
            "where": self._where,
            "x": self._statistics,
            "h": self._help,
            "help": self._help,
            "?": self._help,
            "q": self._quit,
            "quit": self._quit,
            "exit": self._quit,
        }

    def do(self, line: str) -> str:
        """Run one command; errors become text."""
        name, _, rest = line.strip().partition(" ")
        if not name:
            return ""
        action = self.actions.get(name)
        if action is None:
            hint = did_you_mean(name, [n for n in self.actions if len(n) > 1])
            return f"There is no command {name!r}.{hint} h shows all."
        self.stopped = False
        at = SavedPosition(self.d)
        try:
            shown = action(rest.strip())
            text = self.place() if shown is None else shown
            return f"Stopped by Ctrl-C.\n{text}" if self.stopped else text
        except KeyboardInterrupt:
            if not self.interruptible:
                raise
            at.restore()
            return f"Stopped by Ctrl-C.\n{self.place()}"
        except Exception as e:  # whatever it is, the run is kept
            return str(e.args[0]) if isinstance(e, KeyError) and e.args else f"{e}"

    def interrupt(self) -> None:
        """What Ctrl-C does: a run stops at its next event, anything else is given up.

        Asked again before that event came, it gives up the run's move too.
        """
        self.stopped = self.d.pause()
        if not self.stopped:
            raise KeyboardInterrupt

    def place(self) -> str:
        """Where the debugger stands, in a few lines."""
        d = self.d
        if d.ended:
            text = values.describe(d.result) if d.error is None else f"{d.error}"
            return f"the run has ended: {text}"
        frame = d.frame
        assert frame is not None
        mark = {"enter": "→", "leave": "←", "error": "✗"}.get(d.phase, "·")
        title = f"{mark} {str(frame.address) or '(model)'}  {frame.name}"
        title += f"  [{frame.kind}, event {d.index}]"
        if d.phase == "error":
            return f"{title}\n  {type(d.error).__name__}: {d.error}"
        what = "gave" if d.phase == "leave" else "gets"
        value = d.value
        return f"{title}\n  {what} {values.describe(value) if value is not None else 'no tensor'}"

    # --- commands -----------------------------------------------------------------------------

    def _step(self, rest: str) -> None:
        for _ in range(_count("s", rest)):
            self.d.step()
            if self.d.ended or self.stopped:
                break

    def _over(self, rest: str) -> None:
        self.d.over()

    def _out(self, rest: str) -> None:
        self.d.out()

    def _run(self, rest: str) -> None:
        if rest:
            until(self.d, rest)
        else:
            self.d.run()

    def _until(self, rest: str) -> None:
        if not rest:
            raise ValueError("until what? For example: u layers.3.mlp")
        until(self.d, rest)

    def _nan(self, rest: str) -> None:
        self.d.run(
            when=lambda d: d.value is not None and d.value.is_floating_point() and not bool(d.value.isfinite().all())
        )

    def _back(self, rest: str) -> None:
        self.d.back(_count("back", rest))

    def _jump(self, rest: str) -> None:
        self.d.jump(_count("jump", rest, least=0))

    def _break(self, rest: str) -> str:
        if rest:
            modules_for(self.d.model, [Pattern(rest)])  # a name that nothing has is an error here
            self.d.break_at(rest)
        rows = [f"{i}  {b!r}" for i, b in enumerate(self.d.breakpoints)]
        return "\n".join(rows) or "no breakpoints"

    def _delete(self, rest: str) -> str:
        if not rest.isdigit() or int(rest) >= len(self.d.breakpoints):
            raise ValueError(f"no breakpoint {rest!r}; b lists them")
        self.d.clear(self.d.breakpoints[int(rest)])
        return self._break("")

    def _set(self, rest: str) -> None:
        value = self._evaluated(rest)
        old = self.d.value
        if not isinstance(value, votive.Tensor) and old is not None:
            value = votive.full_like(old, value)
        self.d.value = value

    def _zero(self, rest: str) -> None:
        self.d.value = votive.zeros_like(self.d.value)

    def _skip(self, rest: str) -> None:
        self.d.skip()

    def _reset(self, rest: str) -> None:
        self.d.jump(0)

    def _print(self, rest: str) -> str:
        return repr(self._evaluated(rest) if rest else self.d.value)

    def _inputs(self, rest: str) -> str:
        rows = [f"{i}  {values.describe(v)}" for i, v in enumerate(self.d.inputs)]
        return "\n".join(rows) or "no inputs"

    def _where(self, rest: str) -> str:
        return "\n".join(f"{'  ' * i}{str(a) or '(model)'}" for i, a in enumerate(self.d.stack))

    def _statistics(self, rest: str) -> str:
        value = self._evaluated(rest) if rest else self.d.value
        if value is None:
            return "no tensor here"
        found = statistics(value)
        top = max(found.histogram, default=0) or 1
        bars = "".join(_BARS[round(8 * n / top)] for n in found.histogram)
        return f"{found}\n  {found.min:.4g} {bars} {found.max:.4g}"

    def _help(self, rest: str) -> str:
        return HELP

    def _quit(self, rest: str) -> str:
        self.done = True
        return ""

    def _evaluated(self, text: str) -> Any:
        """A Python expression of whoever sits at the terminal."""
        if not text:
            raise ValueError("an expression is missing, such as: value * 2")
        names = {
            "votive": votive,
            "d": self.d,
            "value": self.d.value,
            "inputs": self.d.inputs,
            "output": self.d.output,
            "result": self.d.result,
        }
        try:
            return eval(text, names)
        except Exception as e:
            last = traceback.format_exception_only(e)[-1].strip()
            raise ValueError(last) from e


def until(debugger: Debugger, pattern: str) -> None:
    """Run to the next call that matches; where there is none, stay and say what is similar.

    >>> with votive.debug(votive.nn.Sequential(votive.nn.ReLU()), votive.ones(2)) as d:
    ...     votive.glass.console.until(d, "O")
    Traceback (most recent call last):
    votive.glass.targets.NoMatch: 'O' matches no call. There are '0'.
    """
    goal = Pattern(pattern)
    modules = modules_for(debugger.model, [goal])
    at = SavedPosition(debugger)
    seen: dict[str, None] = {}

    def see(d: Debugger) -> bool:
        seen[str(d.address)] = None
        return False

    watching = [debugger.break_at(p, when=see, phase="enter") for p in ("**", "/**")]
    try:
        debugger.run(until=goal)
    finally:
        for one in watching:
            debugger.clear(one)
    if not debugger.ended or debugger.error is not None:
        return
    at.restore()
    if modules is None:
        said, ops = pattern.rpartition("/")[2], {a.partition("/")[2].split("#")[0] for a in seen}
        near = did_you_mean(said, ops - {""})
        more = f" Operators from here on: {', '.join(sorted(ops - {''})[:12])}." if ops else ""
        raise NoMatch(f"{pattern!r} matches no call from here on.{near or more}")
    raise NoMatch(f"no further call matches {pattern!r}; reset starts again, back N goes back.")


class SavedPosition:
    """Where a debugger stands, to be found again after its run has gone on or was lost."""

    def __init__(self, debugger: Debugger) -> None:
        self._d, self._index, self._ended = debugger, debugger.index, debugger.ended
        self._changes = [c for i, c in debugger._changes if i == self._index]

    def restore(self) -> None:
        """Repeat the run up to there, with the changes made before."""
        if self._ended or not self._d.ended:
            return
        self._d.jump(self._index)
        for change in self._changes:
            self._d._change(change)


def _count(name: str, text: str, least: int = 1) -> int:
    """The number that a command takes; without one the least."""
    if not text:
        return least
    if not text.isdecimal() or int(text) < least:
        raise ValueError(f"{name} takes an integer of at least {least}, not {text!r}.")
    return int(text)


@contextmanager
def _interrupts(console: Console) -> Iterator[None]:
    """Inside, Ctrl-C goes to the console, where that can be."""
    if not console.interruptible or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: console.interrupt())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interact(
    debugger: Debugger, lines: Iterator[str], show: Callable[[str], Any] = print, *, interruptible: bool = False
) -> None:
    """Let lines of commands drive a debugger until they end or one of them is `quit`.

    With `interruptible`, Ctrl-C ends the command that runs, and the run is kept.

    >>> with votive.debug(votive.nn.Identity(), votive.ones(2)) as d:
    ...     votive.glass.interact(d, iter(["p value", "q"]))
    → (model)  Identity  [module, event 0]
      gets float32 (2,)
    tensor([1., 1.])
    """
    console = Console(debugger)
    console.interruptible = interruptible
    show(console.place())
    for line in lines:
        for part in _parts(line):
            with _interrupts(console):
                text = console.do(part)
            if text:
                show(text)
            if console.done:
                return
            if console.stopped:
                break  # what stands behind it on the line is given up, too


def _parts(line: str) -> list[str]:
    """Several commands on one line, apart by semicolons that stand outside of quotes."""
    lexer = shlex.shlex(line, posix=False, punctuation_chars=";")
    if ";" not in line:
        return [line]
    lexer.whitespace_split = True
    out: list[str] = [""]
    for token in lexer:
        if set(token) == {";"}:
            out.append("")
        else:
            out[-1] = f"{out[-1]} {token}".strip()
    return [part for part in out if part]
