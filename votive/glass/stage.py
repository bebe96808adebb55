"""Where all probes meet: each call is made once for all of them, in one order. Knows no purpose.

Before a call and after it, first come the probes that edit, in the order in which they were
attached, then a debugger and the like, at last those that only look. So whoever looks sees what the
rest of the model sees, however `with` blocks are nested.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ..core.mode import mode
from ..dispatch.observe import Observer, attach, detach
from ..nn.hooks import register_around
from . import values

UNSET: Any = object()
# The order of probes at one call.
EDITS, CHANGES, LOOKS = range(3)


class Turn:
    """What all probes share of one running call."""

    __slots__ = ("answered", "args", "call", "error", "instead", "kwargs", "output", "seconds", "shown", "skipped")

    def __init__(self, args: tuple[Any, ...] = (), kwargs: Any = None, call: Any = None) -> None:
        self.args, self.call = args, call
        self.kwargs: dict[str, Any] = {} if kwargs is None else kwargs
        self.output: Any = None
        self.error: Exception | None = None
        self.seconds = 0.0
        self.skipped: Any = UNSET
        self.instead: Any = None
        self.answered = False
        self.shown = mode.shown


Frames = list[tuple[Any, Any]]  # probes with their frames of one call


class Stage(Observer):
    """The probes that are attached, and what they see of operators."""

    def __init__(self) -> None:
        self.probes: tuple[Any, ...] = ()  # in the order of their turn
        self.reaches: tuple[Any, ...] = ()  # those that follow edited values
        self._lock = threading.Lock()
        self._hearing = 0

    def join(self, probe: Any) -> None:
        """Let a probe see calls from now on."""
        with self._lock:
            self.probes = tuple(sorted((*self.probes, probe), key=lambda p: p.order))

    def leave(self, probe: Any) -> None:
        """Let a probe see nothing more."""
        with self._lock:
            self.probes = tuple(p for p in self.probes if p is not probe)

    def hear(self) -> None:
        """See operators from now on, for one more who wants that."""
        with self._lock:
            self._hearing += 1
            if self._hearing == 1:
                attach(self)

    def unhear(self) -> None:
        """One less wants to see operators."""
        with self._lock:
            self._hearing -= 1
            if self._hearing == 0:
                detach(self)

    def follow(self, reach: Any) -> None:
        """Tell of each operator what goes in and comes out."""
        self.hear()
        with self._lock:
            self.reaches = (*self.reaches, reach)

    def unfollow(self, reach: Any) -> None:
        """Tell it no longer."""
        with self._lock:
            self.reaches = tuple(r for r in self.reaches if r is not reach)
        self.unhear()

    def following(self) -> list[Any]:
        """Those that follow values in what runs now."""
        if not self.reaches or mode.repeating is not None:
            return []
        return [r for r in self.reaches if not r.blind]

    # --- operators ----------------------------------------------------------------------------

    def before(self, call: Any) -> Any:
        if mode.unheard:
            return None
        seeing = [p for p in taking_part() if p.hears_operators]
        if not seeing:
            return None
        turn = Turn(call.args, None, call)
        frames = [(p, p._op_frame(call.op, turn)) for p in seeing]
        enter(frames, turn)
        call.args = turn.args
        if turn.skipped is not UNSET:
            return turn.skipped
        return None if turn.instead is None else _operator_instead(turn, call)

    def after(self, call: Any) -> Any:
        if mode.unheard:
            return None
        ran = call.seconds == call.seconds
        for reach in self.following():
            if ran and not mode.shown:
                reach.computed(call)
        frames = self._frames(call)
        if not frames:
            return None
        turn, before = frames[0][1].turn, call.result
        turn.output, turn.seconds = before, call.seconds
        leave(frames, turn)
        for probe, _ in frames:
            probe.stack.pop()
        for reach in self.following():
            reach.moved(turn.output, call.into)  # it will be written there
        return None if turn.output is before else turn.output

    def failed(self, call: Any, error: Exception) -> None:
        for probe, frame in self._frames(call):
            frame.error = error
            probe.failed(frame, error)
            probe.stack.pop()

    def refused(self, op: Any, args: tuple[Any, ...], error: Exception) -> None:
        if mode.unheard:
            return
        turn = Turn(args)
        turn.error = error
        for probe in taking_part():
            if probe.hears_operators:
                probe.failed(probe._op_frame(op, turn), error)
                probe.stack.pop()

    def read(self, tensor: Any) -> None:
        if not mode.unheard and not mode.shown:
            for reach in self.following():
                reach.read(tensor)

    def _frames(self, call: Any) -> Frames:
        return [(p, p.stack[-1]) for p in self.probes if p.stack and p.stack[-1].turn.call is call]


STAGE = Stage()


def taking_part() -> tuple[Any, ...]:
    """The probes that may see a call now: of those that edit, in a repetition only some."""
    chosen = mode.repeating
    if chosen is None:
        return STAGE.probes
    return tuple(p for p in STAGE.probes if p.order != EDITS or any(p is c for c in chosen))


def conduct(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]) -> Any:
    """Stand around a module's call, for all probes that see it."""
    frames: Frames = []
    turn = Turn(args, kwargs)
    if not mode.unheard:
        frames = [(p, p._frame(module, turn)) for p in taking_part() if p.takes(module)]
    if not frames:
        return proceed(args, kwargs)
    entered: Frames = []
    try:
        enter(frames, turn, entered)
        if turn.skipped is not UNSET:
            turn.output = turn.skipped
        else:
            start = time.perf_counter()
            if turn.instead is None:
                turn.output = proceed(turn.args, turn.kwargs)
            else:
                turn.output = _guest(frames, turn)
            turn.seconds = time.perf_counter() - start
        leave(frames, turn)
        return turn.output
    except Exception as e:
        turn.error = e
        for probe, frame in entered:
            probe.failed(frame, e)
        raise
    finally:
        for probe, frame in frames:
            probe._close(frame)


def enter(frames: Frames, turn: Turn, entered: Frames | None = None) -> None:
    """Let all probes see a call that is about to run."""
    for probe, frame in frames:
        probe.answer(frame)
    for probe, frame in frames:
        if turn.answered and probe.order == EDITS:
            continue
        if entered is not None:
            entered.append((probe, frame))
        if probe.order == LOOKS or not STAGE.reaches:
            probe.entered(frame)
            continue
        lost, skipped, instead = _Lost((turn.args, turn.kwargs)), turn.skipped, turn.instead
        probe.entered(frame)
        runs = turn.skipped is skipped and turn.instead is instead
        lost.tell((turn.args, turn.kwargs) if runs else (), frame)


def leave(frames: Frames, turn: Turn) -> None:
    """Let all probes see a call that has run."""
    for probe, frame in frames:
        if turn.answered and probe.order == EDITS:
            continue
        if probe.order == LOOKS or not STAGE.reaches:
            probe.left(frame)
            continue
        lost = _Lost(turn.output)
        probe.left(frame)
        lost.tell(turn.output, frame)


class _Lost:
    """Tells those that follow values which of them a change has taken away."""

    def __init__(self, value: Any) -> None:
        self.had = [(r, r.keys_of(value)) for r in STAGE.following()]

    def tell(self, value: Any, frame: Any) -> None:
        for reach, marks in self.had:
            gone = marks - reach.keys_of(value) if marks else marks
            if gone:
                reach.cut(gone, str(frame.address))


def _guest(frames: Frames, turn: Turn) -> Any:
    """Run what was swapped in; what it calls has addresses below the place where it runs."""
    path = mode.module_path
    before = [(p, p.host(turn.instead)) for p, _ in frames]
    # As plain text: whatever is called next is then taken for the module in this place.
    mode.module_path = str(path)
    try:
        # Its parts are known to nobody, so all modules are looked at.
        with register_around(None, conduct):
            return turn.instead(*turn.args, **turn.kwargs)
    finally:
        mode.module_path = path
        for probe, was in before:
            probe.unhost(was)


def _operator_instead(turn: Turn, call: Any) -> Any:
    """Run a function in an operator's place, on the arguments that are not at their defaults."""
    args, schema = list(turn.args), call.op.schema.args
    while args and _is(args[-1], schema[len(args) - 1].default):
        args.pop()
    mode.unheard += 1
    try:
        result = turn.instead(*args)
    except TypeError as e:
        names = ", ".join(a.name for a in schema[: len(args)])
        e.add_note(f"It was swapped in for the operator {call.op.name}, and called with ({names}).")
        raise
    finally:
        mode.unheard -= 1
    for reach in STAGE.following():
        reach.spread(turn.args, result)
    return result


def _is(value: Any, default: Any) -> bool:
    """Whether an argument is the default; values of tensors are not asked for."""
    return value is default or (
        value.__class__ is default.__class__ and isinstance(value, (bool, int, float, str, tuple)) and value == default
    )


def mutated(call: Any) -> list[Any]:
    """The arguments that an operator's kernel writes into."""
    names = call.op.schema.names
    return [call.args[names.index(n)] for n in call.op.mutates]


def storages(value: Any) -> set[Any]:
    """The memory of all tensors in a value."""
    return {t._storage for _, t in values.tensors(value)}
