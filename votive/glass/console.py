"""A debugger in the terminal: commands by name, and the keys that editors have. Knows no model.

It reads commands from whatever gives lines, so that it can be scripted and tested.
"""

from __future__ import annotations

import shlex
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import votive

from . import values
from .debugger import Debugger
from .statistics import statistics
from .targets import NoMatch

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
    "\x1b[23~": "step", "\x1b[23;2~": "out", "\x1b[24~": "out", "\x1b[21~": "over",
    "\x1b[21;2~": "back", "\x1b[15~": "run", "\x1b[34~": "back",
}  # fmt: skip
_BARS = " ▁▂▃▄▅▆▇█"


class Console:
    """A debugger driven by commands; `do` runs one and gives what is to be shown."""

    def __init__(self, debugger: Debugger) -> None:
        self.d = debugger
        self.done = False
        self.actions: dict[str, Callable[[str], str | None]] = {
            "step": self._step, "s": self._step, "over": self._over, "n": self._over,
            "next": self._over, "out": self._out, "o": self._out, "run": self._run,
            "c": self._run, "continue": self._run, "u": self._until, "until": self._until,
            "nan": self._nan, "back": self._back, "jump": self._jump, "b": self._break,
            "break": self._break, "del": self._delete, "set": self._set, "zero": self._zero,
            "skip": self._skip, "reset": self._reset, "p": self._print, "print": self._print,
            "i": self._inputs, "inputs": self._inputs, "w": self._where, "where": self._where,
            "x": self._statistics, "h": self._help, "help": self._help,
            "?": self._help, "q": self._quit, "quit": self._quit, "exit": self._quit,
        }  # fmt: skip

    def do(self, line: str) -> str:
        """Run one command; errors become text."""
        name, _, rest = line.strip().partition(" ")
        if not name:
            return ""
        action = self.actions.get(name)
        if action is None:
            return f"no command {name!r}; h shows them"
        try:
            shown = action(rest.strip())
            return self.place() if shown is None else shown
        except (NoMatch, ValueError, LookupError, TypeError, RuntimeError) as e:
            return f"{type(e).__name__}: {e}"

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
        for _ in range(int(rest or 1)):
            self.d.step()

    def _over(self, rest: str) -> None:
        self.d.over()

    def _out(self, rest: str) -> None:
        self.d.out()

    def _run(self, rest: str) -> None:
        self.d.run(until=rest or None)

    def _until(self, rest: str) -> None:
        if not rest:
            raise ValueError("until what? For example: u layers.3.mlp")
        self.d.run(until=rest)

    def _nan(self, rest: str) -> None:
        self.d.run(when=lambda d: d.value is not None and d.value.is_floating_point()
                   and not bool(d.value.isfinite().all()))  # fmt: skip

    def _back(self, rest: str) -> None:
        self.d.back(int(rest or 1))

    def _jump(self, rest: str) -> None:
        self.d.jump(int(rest))

    def _break(self, rest: str) -> str:
        if rest:
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
            "votive": votive, "d": self.d, "value": self.d.value, "inputs": self.d.inputs,
            "output": self.d.output, "result": self.d.result,
        }  # fmt: skip
        try:
            return eval(text, names)
        except Exception as e:
            last = traceback.format_exception_only(e)[-1].strip()
            raise ValueError(last) from e


def interact(debugger: Debugger, lines: Iterator[str], show: Callable[[str], Any] = print) -> None:
    """Let lines of commands drive a debugger until they end or one of them is `quit`.

    >>> with votive.debug(votive.nn.Identity(), votive.ones(2)) as d:
    ...     votive.glass.interact(d, iter(["p value", "q"]))
    → (model)  Identity  [module, event 0]
      gets float32 (2,)
    tensor([1., 1.])
    """
    console = Console(debugger)
    show(console.place())
    for line in lines:
        for part in _parts(line):
            text = console.do(part)
            if text:
                show(text)
            if console.done:
                return


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
