"""A run that can be paused: a model in a greenlet, its events, and what was changed.

The run hands over at the events it was told to stop at. It holds no reference to the debugger that
drives it, so that an abandoned debugger is freed and takes its run along.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from ..core.mode import mode
from ..nn import Module
from . import values
from .address import Pattern
from .backward import BackwardObserver
from .probe import Frame, Probe
from .probe_hub import CHANGES

Change = Callable[[Frame], None]
Stop = Callable[[Frame, str], bool]


class _EventProbe(Probe):
    """Tells a run of each event, and sees only what the run's own greenlet does."""

    order = CHANGES

    def __init__(self, model: Module, run: Run, ops: bool, sites: tuple[Pattern, ...]) -> None:
        super().__init__(model, ops=ops, sites=sites)
        self.run = run

    @property
    def inactive(self) -> bool:
        return getcurrent() is not self.run.worker or super().inactive

    def entered(self, frame: Frame) -> None:
        self.run.event(frame, "enter")

    def left(self, frame: Frame) -> None:
        tag(frame)
        self.run.event(frame, "leave")

    def failed(self, frame: Frame, error: Exception) -> None:
        # Only where it happened; the calls around it fail with it.
        if self.run.error is not error:
            self.run.error = error
            self.run.event(frame, "error")


def tag(frame: Frame) -> None:
    """Write the address where backward finds it."""
    found = values.first(frame.output)
    node = None if found is None else found.grad_fn
    if node is not None:
        node.metadata.setdefault("op" if frame.kind == "op" else "module", frame.address)


class Run:
    """One run of `model(*args, **kwargs)`, and of the backward pass of `loss` of its result."""

    def __init__(
        self,
        model: Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        loss: Callable[[Any], Any] | None,
        ops: bool,
        sites: tuple[Pattern, ...],
        changes: list[tuple[int, Change]],
    ) -> None:
        self.model, self.args, self.kwargs, self.loss = model, args, kwargs, loss
        self.changes = changes
        self.index = -1
        self.frame: Frame | None = None
        self.phase = "start"
        self.result: Any = None
        self.error: Exception | None = None
        self.goal: int | None = None  # the event to stop at, whatever else is said
        self.stop: Stop | None = None  # what to stop at; None while it stands
        self.pause = False  # whether to stop at the next event, whatever else is said
        self.probe = _EventProbe(model, self, ops, sites)
        self.worker = greenlet(self._program)
        # It begins with the switches of whoever starts it, and keeps its own from then on.
        self._switches = dict(mode.__dict__)

    @property
    def ended(self) -> bool:
        return bool(self.worker.dead)

    def _program(self) -> None:
        with self.probe:
            result = self.model(*self.args, **self.kwargs)
            if self.loss is not None:
                with BackwardObserver(self.event, lambda: getcurrent() is self.worker):
                    self.loss(result).backward()
        self.result = result

    def event(self, frame: Frame, phase: str) -> None:
        """In the worker: one more event; hand over if it is one to stop at."""
        self.index += 1
        for index, change in self.changes:
            if index == self.index:
                change(frame)
        self.frame, self.phase = frame, phase
        if self.pause:
            self.pause, self.goal = False, None
        elif self.goal is not None:
            if self.index < self.goal:
                return
            self.goal = None
        elif phase != "error" and not (self.stop is not None and self.stop(frame, phase)):
            return
        self._switches = dict(mode.__dict__)
        self.stop = None
        getcurrent().parent.switch()
        _set_switches(self._switches)

    def resume(self, stop: Stop | None) -> None:
        """Run on to the next event where `stop(frame, phase)` holds, or to the end."""
        self.stop, self.pause = stop, False
        outer = dict(mode.__dict__)
        self.worker.parent = getcurrent()
        _set_switches(self._switches)
        try:
            self.worker.switch()
        finally:
            _set_switches(outer)
            self.stop = None
            if self.worker.dead:
                self.frame, self.phase = None, "end"

    def abandon(self) -> None:
        """End it where it stands."""
        if not self.worker.dead:
            outer = dict(mode.__dict__)
            self.worker.parent = getcurrent()
            try:
                self.worker.throw(GreenletExit)
            finally:
                _set_switches(outer)
        self.frame, self.result = None, None


def _set_switches(switches: dict[str, Any]) -> None:
    mode.__dict__.clear()
    mode.__dict__.update(switches)
