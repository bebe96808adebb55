"""Stopping inside a run: step, look, change, go on, go back. Knows no model.

The model runs on the same thread, as it is written. At each event, the beginning or the end of a
call, it may hand over to whoever holds the debugger, and waits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Self

from ..nn import Module
from ..nn.points import has_points
from . import values
from .address import Address, Pattern, PatternLike, Patterns
from .capture import put_input
from .display import Displayable
from .module_swap import check_name, replacement_for
from .probe import Frame
from .run import Change, Run, Stop
from .skipping import skipped_output
from .snapshot import Snapshot
from .targets import patterns

Condition = Callable[["Debugger"], Any]


class Breakpoint:
    """A place to stop at: where, in which phase, and under which condition."""

    def __init__(self, at: PatternLike, phase: str | None, when: Condition | None) -> None:
        self.pattern, self.when = Pattern(at), when
        self.phase = phase or ("leave" if when is not None else "enter")
        self.hits = 0

    def __repr__(self) -> str:
        condition = "" if self.when is None else " when …"
        return f"<breakpoint {self.pattern.text} on {self.phase}{condition}, hit {self.hits} times>"


class Debugger(Displayable):
    """A run of a model that stops where it is told; use it in a `with` block.

    It begins before the model's first call. `step`, `over`, `out`, `run` and `back` move it and
    give the address where it stands, or None at the end. `value` is what a call gave, or is given;
    it may be assigned. With `loss`, a function of the output, the run goes on through the backward
    pass, whose stops are of kind "grad". `sites` are patterns of named places of a decoder, such as
    "layers.3.attn.pattern", at which it is to stop too.

    >>> net = votive.nn.Sequential(votive.nn.Linear(1, 1), votive.nn.ReLU())
    >>> with votive.debug(net, votive.ones(1, 1)) as d:
    ...     at = d.run(until="1")
    ...     d.value = votive.full((1, 1), 7.0)
    ...     print(at, d.finish())
    1 tensor([[7.]])
    """

    def __init__(
        self,
        model: Module,
        *args: object,
        ops: bool = True,
        loss: Callable[[Any], Any] | None = None,
        sites: Patterns = (),
        **kwargs: object,
    ) -> None:
        self.breakpoints: list[Breakpoint] = []
        self._what = (model, args, kwargs, loss, ops, tuple(patterns(sites)))
        self._beginning = Snapshot(model, args, kwargs)
        self._changes: list[tuple[int, Change]] = []
        self._run: Run | None = Run(*self._what, self._changes)
        self._go(lambda frame, phase: True)

    # --- where it stands ----------------------------------------------------------------------

    @property
    def model(self) -> Module:
        """The model that runs."""
        return self._what[0]

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._run is None or self._run.ended

    @property
    def frame(self) -> Frame | None:
        """The call where it stands; None at the end."""
        return None if self._run is None else self._run.frame

    @property
    def phase(self) -> str:
        """Where in the call it stands: at its "enter", "leave" or "error"; or at the "end"."""
        return "closed" if self._run is None else self._run.phase

    @property
    def index(self) -> int:
        """The number of the event where it stands."""
        return -1 if self._run is None else self._run.index

    @property
    def result(self) -> Any:
        """The model's output, when the run is over."""
        return None if self._run is None else self._run.result

    @property
    def error(self) -> Exception | None:
        """The error that the run met."""
        return None if self._run is None else self._run.error

    @property
    def address(self) -> Address | None:
        """Address of the call where it stands."""
        return None if self.frame is None else self.frame.address

    @property
    def stack(self) -> list[Address]:
        """The calls that are running, outermost first."""
        out: list[Address] = []
        frame = self.frame
        while frame is not None:
            out.insert(0, frame.address)
            frame = frame.parent
        return out

    @property
    def depth(self) -> int:
        return 0 if self.frame is None else self.frame.depth

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The positional inputs of the call where it stands."""
        return () if self.frame is None else self.frame.args

    @property
    def output(self) -> Any:
        """What the call gave; None before it has run."""
        return None if self.frame is None or self.phase != "leave" else self.frame.output

    @property
    def value(self) -> Any:
        """After a call the first tensor of its output, before it that of its inputs."""
        frame = self._standing()
        if self.phase == "leave":
            return values.first(frame.output)
        return values.first((frame.args, frame.kwargs))

    @value.setter
    def value(self, new: object) -> None:
        self.replace(new)

    # --- moving -------------------------------------------------------------------------------

    def step(self) -> Address | None:
        """To the next event, into calls."""
        return self._go(lambda frame, phase: True)

    def over(self) -> Address | None:
        """To the end of the call where it stands, or to the next event outside it."""
        here, phase = self.frame, self.phase
        if here is None:
            return self.step()
        depth = here.depth
        if phase == "enter":
            return self._go(lambda frame, p: frame is here and p != "enter")
        return self._go(lambda frame, p: frame.depth <= depth)

    def out(self) -> Address | None:
        """To the end of the call around the one where it stands."""
        parent = None if self.frame is None else self.frame.parent
        if parent is None:
            return self._go(lambda frame, p: False)
        return self._go(lambda frame, p: frame is parent and p != "enter")

    def run(
        self, until: PatternLike | None = None, *, when: Condition | None = None, phase: str | None = None
    ) -> Address | None:
        """To the next event that matches, or to a breakpoint, or to the end.

        `until` is an address or pattern; `when(debugger)` is asked at each match. Without `phase`,
        it stops before a call, and with `when` after it, where there is a value to judge.
        """
        if until is None and when is None:
            return self._go(lambda frame, p: False)
        goal = Breakpoint("**" if until is None else until, phase, when)
        self._check_seen(goal.pattern)
        also = None if until is not None else Breakpoint("/**", phase, when)
        return self._go(lambda frame, p: self._hit(goal, frame, p) or (also is not None and self._hit(also, frame, p)))

    def finish(self) -> Any:
        """To the end, past all breakpoints; gives the model's output."""
        kept, self.breakpoints = self.breakpoints, []
        try:
            while not self.ended:
                self._go(lambda frame, p: False)
        finally:
            self.breakpoints = kept
        return self.result

    def back(self, count: int = 1) -> Address | None:
        """To an earlier event: the run is repeated up to there, with the changes made before it."""
        if count < 1:
            raise ValueError(f"back: count must be positive, got {count}.")
        last = self.index + 1 if self.ended and self.error is None else self.index
        return self.jump(max(last - count, 0))

    def jump(self, index: int) -> Address | None:
        """To the event with this number; later changes are dropped."""
        if index < 0:
            raise ValueError(f"jump: events are counted from 0, got {index}.")
        if self._run is None:
            raise RuntimeError("the debugger is closed.")
        kept = [(i, change) for i, change in self._changes if i < index]
        self._run.abandon()
        self._beginning.restore()
        self._changes = kept
        self._run = Run(*self._what, kept)
        self._run.goal = index
        return self._go(lambda frame, p: False)

    def pause(self) -> bool:
        """Let a move that is under way end at the next event; for signal handlers and threads.

        Gives False where nothing moves, or where it was asked for already.

        >>> with votive.debug(votive.nn.Identity(), votive.ones(1)) as d:
        ...     d.pause()
        False
        """
        run = self._run
        if run is None or run.stop is None or run.pause:
            return False
        run.pause = True
        return True

    def break_at(self, at: PatternLike, *, when: Condition | None = None, phase: str | None = None) -> Breakpoint:
        """Let `run` stop at a pattern, now and after `back`."""
        self.breakpoints.append(Breakpoint(at, phase, when))
        self._check_seen(self.breakpoints[-1].pattern)
        return self.breakpoints[-1]

    def _check_seen(self, pattern: Pattern) -> None:
        """Raise for a named place at which this run is not opened."""
        address = pattern.text.removeprefix("^")
        given = any(p.may_mean(address) or "*" in address or "{" in address for p in self._what[5])
        if pattern.wants_sites and has_points(self.model) and not given:
            raise ValueError(
                f"debug: {pattern.text!r} is a named place, at which a run stops if it is begun so: "
                f"debug(model, ..., sites={pattern.text!r})."
            )

    def clear(self, breakpoint: Breakpoint | None = None) -> None:
        """Forget one breakpoint, or all."""
        left = [] if breakpoint is None else [b for b in self.breakpoints if b is not breakpoint]
        self.breakpoints = left

    # --- changing -----------------------------------------------------------------------------

    def replace(self, new: object, path: tuple[Any, ...] = ()) -> None:
        """Give on another value: of the output after a call, of the inputs before it."""
        phase = self.phase

        def change(frame: Frame) -> None:
            if phase == "leave":
                way = path or values.first_path(frame.output)
                frame.output = new if way is None else values.put(frame.output, way, new)
            else:
                put_input(frame, path, new)

        self._change(change)

    def skip(self, value: object = None) -> None:
        """Before a call: let it not run, and give `value`; of a module, by default its input."""
        self._before("skip")

        def change(frame: Frame) -> None:
            frame.skip(skipped_output(frame) if value is None else value)

        self._change(change)

    def swap(self, module: object) -> None:
        """Before a call: let another module run in its place, this once.

        A text is the address of another module of the model, or "identity". In an operator's place
        runs a function, of the operator's arguments but for those at their defaults.
        """
        self._before("swap")
        frame = self._standing()
        if frame.kind == "grad":
            raise ValueError(f"swap: {self.address} is a step of the backward pass.")
        if isinstance(module, str):
            if not frame.is_module:
                raise ValueError(f"swap: {self.address} is an operator; give a function.")
            check_name(self._what[0], module)
            module = replacement_for(self._what[0], frame.address.module, module)
            if module is None:
                return self.skip()
        return self._change(lambda frame: frame.swap(module))

    def _change(self, change: Callable[[Frame], None]) -> None:
        change(self._standing())
        self._changes.append((self.index, change))

    def _before(self, name: str) -> None:
        at = self._standing().address
        if self.phase != "enter":
            raise ValueError(f"{name}: the call at {at if str(at) else '(model)'} has run already; go back first.")

    def _standing(self) -> Frame:
        if self.frame is None:
            raise RuntimeError("the run has ended; go back to look at it.")
        return self.frame

    # --- the run ------------------------------------------------------------------------------

    def _go(self, stop: Stop) -> Address | None:
        if self._run is None:
            raise RuntimeError("the debugger is closed.")
        if not self._run.ended:
            self._run.resume(lambda frame, phase: self._broken(frame, phase) or stop(frame, phase))
        return self.address

    def _broken(self, frame: Frame, phase: str) -> bool:
        hits = [b for b in self.breakpoints if self._hit(b, frame, phase)]
        for b in hits:
            b.hits += 1
        return bool(hits)

    def _hit(self, b: Breakpoint, frame: Frame, phase: str) -> bool:
        if phase != b.phase or not b.pattern.matches(frame.address, frame):
            return False
        if b.when is None:
            return True
        assert self._run is not None
        with self._run.probe.muted():
            return bool(b.when(self))

    def close(self) -> None:
        """End the run and free what it holds."""
        run, self._run = self._run, None
        if run is not None:
            run.abandon()
            self._changes.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        # At the end of the program a run that waits can no longer be ended, and need not be.
        if getattr(self, "_run", None) is not None and not sys.is_finalizing():
            self.close()

    def __repr__(self) -> str:
        if self.frame is None:
            return f"<debugger: {self.phase}>"
        return f"<debugger at {self.phase} of {self.address} ({self.frame.name})>"


def debug(
    model: Module,
    *args: object,
    ops: bool = True,
    loss: Callable[[Any], Any] | None = None,
    sites: Patterns = (),
    **kwargs: object,
) -> Debugger:
    """Run `model(*args, **kwargs)` under a debugger; see `votive.glass.Debugger`.

    >>> with votive.debug(votive.nn.Identity(), votive.ones(1)) as d:
    ...     d
    <debugger at enter of  (Identity)>
    """
    return Debugger(model, *args, ops=ops, loss=loss, sites=sites, **kwargs)


class Event:
    """One event of `steps`: where, what, and the means to change it."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self.index, self.phase = debugger.index, debugger.phase
        self.address, self.frame = debugger.address, debugger.frame

    @property
    def value(self) -> Any:
        return self._debugger.value

    @value.setter
    def value(self, new: object) -> None:
        self._debugger.replace(new)

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self._debugger.inputs

    def replace(self, new: object) -> None:
        self._debugger.replace(new)

    def skip(self, value: object = None) -> None:
        self._debugger.skip(value)

    def swap(self, module: object) -> None:
        self._debugger.swap(module)

    def __repr__(self) -> str:
        name = "" if self.frame is None else self.frame.name
        return f"<{self.phase} {self.address} ({name})>"


def steps(
    model: Module,
    *args: object,
    at: PatternLike | None = None,
    ops: bool = False,
    loss: Callable[[Any], Any] | None = None,
    **kwargs: object,
) -> Iterator[Event]:
    """The events of a run, one by one; the run waits while the loop's body looks at one.

    `at` limits them to addresses that match. The generator's result is the model's output.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> [(e.phase, str(e.address)) for e in votive.steps(net, votive.ones(1), at="*")]
    [('enter', '0'), ('leave', '0'), ('enter', '1'), ('leave', '1')]
    """
    pattern = None if at is None else Pattern(at)
    ops = ops or (pattern is not None and pattern.wants_ops)
    sites = [pattern] if pattern is not None and pattern.wants_sites else []
    with Debugger(model, *args, ops=ops, loss=loss, sites=sites, **kwargs) as d:
        while not d.ended:
            frame = d.frame
            assert frame is not None
            if pattern is None or pattern.matches(frame.address, frame):
                yield Event(d)
            d.step()
        return d.result
