"""How a run shows itself: a live bar in a terminal, plain lines elsewhere. Knows numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

# Drawing the bar takes milliseconds, which short steps should not all pay.
_REFRESH_S = 0.1


@dataclass(frozen=True)
class Report:
    """What there is to show after a step."""

    step: int
    total: int | None
    epoch: int
    loss: float
    lr: float
    rate: float
    unit: str
    eta: float | None
    memory: int | None
    values: Mapping[str, float] = field(default_factory=dict)  # what a step records beside its loss


class Display(Protocol):
    """Somewhere to show progress."""

    def start(self, total: int | None, done: int) -> None:
        """A run begins, `done` of `total` steps already made."""

    def update(self, report: Report) -> None:
        """A step was made that shall be shown."""

    def note(self, text: str) -> None:
        """Something else happened."""

    def stop(self) -> None:
        """The run is over."""


def duration(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> votive.train.progress.duration(3725)
    '1:02:05'
    """
    minutes, s = divmod(max(0, round(seconds)), 60)
    h, m = divmod(minutes, 60)
    return f"{h}:{m:02d}:{s:02d}" if h else f"{m}:{s:02d}"


def amount(value: float, units: tuple[str, ...] = ("", "k", "M", "G"), base: float = 1000) -> str:
    """A number of three digits with a unit.

    >>> votive.train.progress.amount(12345)
    '12.3k'
    """
    for unit in units[:-1]:
        if abs(value) < base:
            return f"{value:.3g}{unit}"
        value /= base
    return f"{value:.3g}{units[-1]}"


def described(r: Report) -> list[str]:
    """The parts of a line about a step."""
    beside = [f"{name} {value:.3g}" for name, value in r.values.items()]
    parts = [f"loss {r.loss:.4g}", *beside, f"lr {r.lr:.3g}", f"{amount(r.rate)} {r.unit}/s"]
    if r.eta is not None:
        parts.append(f"eta {duration(r.eta)}")
    if r.memory is not None:
        parts.append("mem " + amount(r.memory, ("B", "kB", "MB", "GB")))
    return parts


class Lines:
    """One line of text per report.

    >>> lines = votive.train.progress.Lines()
    >>> lines.note("hello")
    hello
    """

    def __init__(self) -> None:
        self.total: int | None = None

    def start(self, total: int | None, done: int) -> None:
        self.total = total

    def update(self, report: Report) -> None:
        of = "" if self.total is None else f"/{self.total}"
        self.note("  ".join([f"step {report.step}{of}", *described(report)]))

    def note(self, text: str) -> None:
        print(text, flush=True)

    def stop(self) -> None:
        pass


class Live:
    """A bar that moves, through rich."""

    def __init__(self, console: Any = None) -> None:
        from rich import progress

        self._bar = progress.Progress(
            progress.TextColumn("epoch {task.fields[epoch]}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[text]}"),
            console=console,
            # No thread that refreshes: one that is writing when a loader forks would leave its
            # locks taken in the workers.
            auto_refresh=False,
        )
        self._task: Any = None
        self._drawn = 0.0

    def start(self, total: int | None, done: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=done, epoch=0, text="")

    def update(self, report: Report) -> None:
        self._bar.update(self._task, completed=report.step, epoch=report.epoch, text="  ".join(described(report)))
        now = time.perf_counter()
        if now - self._drawn >= _REFRESH_S:
            self._bar.refresh()
            self._drawn = now

    def note(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False)

    def stop(self) -> None:
        self._bar.stop()


class Silent:
    """Shows nothing.

    >>> votive.train.progress.Silent().note("hello")
    """

    def start(self, total: int | None, done: int) -> None:
        pass

    def update(self, report: Report) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def stop(self) -> None:
        pass


def display(choice: bool | Display | None) -> Display:
    """What `progress=` asks for: False for none, None for what suits the output, or one's own."""
    if choice is False:
        return Silent()
    if choice is None or choice is True:
        return Live() if sys.stdout.isatty() else Lines()
    return choice


class Pace:
    """Measures items per second over the recent past, and the time still needed."""

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self._items = 0
        self._steps = 0
        self.rate = 0.0
        self.step_seconds: float | None = None

    def count(self, items: int) -> None:
        """A step with this many items was made."""
        self._items += items
        self._steps += 1

    def lap(self) -> None:
        """Take the time since the last lap into account."""
        now = time.perf_counter()
        seconds, self._at = max(now - self._at, 1e-9), now
        if not self._steps:
            return
        self.rate = self._items / seconds
        latest = seconds / self._steps
        # Half old, half new: laps differ, and the estimate should neither jump nor lag.
        self.step_seconds = latest if self.step_seconds is None else (self.step_seconds + latest) / 2
        self._items = self._steps = 0
