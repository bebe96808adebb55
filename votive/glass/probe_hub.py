"""Where all probes meet: each call is made once for all of them, in one order. Knows no purpose.

Before a call and after it, first come the probes that edit, in the order in which they were
attached, then a debugger and the like, at last those that only look. So whoever looks sees what the
rest of the model sees, however `with` blocks are nested.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.mode import mode
from ..dispatch.observe import Call, Observer, attach, detach
from ..dispatch.state import state as dispatch
from ..nn import Module
from ..nn.hooks import register_around
from ..nn.points import POINTS, Point
from ..ops.registry import Op
from ..tensor import Tensor
from . import values
from .sharded import apart, joined, lies

if TYPE_CHECKING:
    from .probe import Frame, Probe
    from .taint import TaintTracker


UNSET: Any = object()
# The order of probes at one call.
EDITS, CHANGES, LOOKS = range(3)


class CallState:
    """What all probes share of one running call."""

    __slots__ = (
        "answered",
        "args",
        "call",
        "edited",
        "error",
        "kwargs",
        "output",
        "replacement",
        "seconds",
        "shown",
        "skipped",
    )

    def __init__(
        self, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, call: Call | None = None
    ) -> None:
        self.args, self.call = args, call
        self.kwargs: dict[str, Any] = {} if kwargs is None else kwargs
        self.output: Any = None
        self.error: Exception | None = None
        self.seconds = 0.0
        self.skipped: Any = UNSET
        self.replacement: Any = None
        self.answered = False
        self.shown = mode.shown
        # In a compiled program: what edits have done, by probe; while it is traced, to be filled by them.
        self.edited: dict[int, list[Any]] | None = None


Frames = list[tuple[Any, Any]]  # probes with their frames of one call


class ProbeHub(Observer):
    """The probes that are attached, and what they see of operators."""

    def __init__(self) -> None:
        self.probes: tuple[Any, ...] = ()  # in the order of their turn
        self.trackers: tuple[Any, ...] = ()  # those that follow edited values
        self._lock = threading.Lock()
        self._watching = 0

    def add(self, probe: Probe) -> None:
        """Let a probe see calls from now on."""
        with self._lock:
            self.probes = tuple(sorted((*self.probes, probe), key=lambda p: p.order))
            dispatch.lookers = self.probes

    def remove(self, probe: Probe) -> None:
        """Let a probe see nothing more."""
        with self._lock:
            self.probes = tuple(p for p in self.probes if p is not probe)
            dispatch.lookers = self.probes

    def watch_operators(self) -> None:
        """See operators from now on, for one more who wants that."""
        with self._lock:
            self._watching += 1
            if self._watching == 1:
                attach(self)

    def unwatch_operators(self) -> None:
        """One less wants to see operators."""
        with self._lock:
            self._watching -= 1
            if self._watching == 0:
                detach(self)

    def track(self, tracker: TaintTracker) -> None:
        """Tell of each operator what goes in and comes out."""
        self.watch_operators()
        with self._lock:
            self.trackers = (*self.trackers, tracker)

    def watch_points(self, probe: Probe) -> None:
        """Let a probe see places in decoders."""
        POINTS.add(probe)

    def unwatch_points(self, probe: Probe) -> None:
        """Let it see them no longer."""
        POINTS.remove(probe)

    def untrack(self, tracker: TaintTracker) -> None:
        """Tell it no longer."""
        with self._lock:
            self.trackers = tuple(r for r in self.trackers if r is not tracker)
        self.unwatch_operators()

    def active_trackers(self) -> list[Any]:
        """Those that follow values in what runs now."""
        if not self.trackers or mode.recomputing is not None:
            return []
        return [r for r in self.trackers if not r.inactive]

    # --- operators ----------------------------------------------------------------------------

    def before(self, call: Call) -> Any:
        if mode.unobserved:
            return None
        seeing = [p for p in active_probes() if p.sees_operators]
        if not seeing:
            return None
        state = CallState(call.args, None, call)
        frames = [(p, p._op_frame(call.op, state)) for p in seeing]
        before_call(frames, state)
        call.args = state.args
        if state.skipped is not UNSET:
            return state.skipped
        return None if state.replacement is None else _replace_operator(state, call)

    def after(self, call: Call) -> Any:
        if mode.unobserved:
            return None
        ran = call.seconds == call.seconds
        for tracker in self.active_trackers():
            if ran and not mode.shown:
                tracker.computed(call)
        frames = self._frames(call)
        if not frames:
            return None
        state, before = frames[0][1].state, call.result
        state.output, state.seconds = before, call.seconds
        after_call(frames, state)
        for probe, _ in frames:
            probe.stack.pop()
        for tracker in self.active_trackers():
            tracker.moved(state.output, call.into)  # it will be written there
        return None if state.output is before else state.output

    def failed(self, call: Call, error: Exception) -> None:
        for probe, frame in self._frames(call):
            frame.error = error
            probe.failed(frame, error)
            probe.stack.pop()

    def refused(self, op: Op, args: tuple[Any, ...], error: Exception) -> None:
        if mode.unobserved:
            return
        state = CallState(args)
        state.error = error
        for probe in active_probes():
            if probe.sees_operators:
                probe.failed(probe._op_frame(op, state), error)
                probe.stack.pop()

    def read(self, tensor: Tensor) -> None:
        if not mode.unobserved and not mode.shown:
            for tracker in self.active_trackers():
                tracker.read(tensor)

    def _frames(self, call: Call) -> Frames:
        return [(p, p.stack[-1]) for p in self.probes if p.stack and p.stack[-1].state.call is call]


HUB = ProbeHub()


def active_probes() -> tuple[Any, ...]:
    """The probes that may see a call now: of those that edit, in a repetition only some."""
    chosen = mode.recomputing
    if chosen is None:
        return HUB.probes
    return tuple(p for p in HUB.probes if p.order != EDITS or any(p is c for c in chosen))


def around_module(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]) -> Any:
    """Stand around a module's call, for all probes that see it."""
    return _around(module, CallState(args, kwargs), proceed, [])


def around_point(point: Point, x: Tensor) -> Tensor:
    """Show a value at a place in a decoder to all probes that ask for it."""
    return _around(point, CallState((x,)), lambda args, kwargs: args[0], [])


POINTS.show = around_point


class TracedAround:
    """`around_module` while a program is traced, and what it must be shown after each run of the graph."""

    def __init__(
        self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> None:
        state, frames = CallState(args, kwargs), list[tuple[Any, Any]]()
        state.edited = {}
        self.result = _around(module, state, proceed, frames)
        ins, outs = ([p for p, f in frames if p.reads(f, side)] for side in ("in", "out"))
        self.keeps_graph = any(p.keeps_graph for p in (*ins, *outs))
        # Only what somebody looks at.
        self.args = state.args if ins else ()
        self.kwargs = state.kwargs if ins else {}
        self.output = self.result if outs else None
        self.more = state.edited

    @staticmethod
    def show(
        module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], more: Any, proceed: Callable[..., Any]
    ) -> None:
        """Let all probes see the call again, with the values of another run."""
        state = CallState(args, kwargs)
        state.edited = more
        _around(module, state, proceed, [])


around_module.traced = TracedAround  # type: ignore[attr-defined]


def _around(module: Module, state: CallState, proceed: Callable[..., Any], frames: Frames) -> Any:
    args, kwargs = state.args, state.kwargs
    if not mode.unobserved:
        frames += [(p, p._frame(module, state)) for p in active_probes() if p.takes(module)]
    if not frames:
        return proceed(args, kwargs)
    entered: Frames = []
    # Of a model that is cut over ranks, probes see whole values, and the call has this rank's parts.
    edited = any(p.order != LOOKS for p, _ in frames)
    given = args[0] if args else None
    how = lies(module, "into", given)
    whole = joined(given, how, edited)
    if how is not None:
        state.args = (whole, *args[1:])
    try:
        before_call(frames, state, entered)
        if state.skipped is not UNSET:
            state.output, given, whole = state.skipped, None, None
            how = how if module.__class__ is Point else lies(module, "out", state.output)
        else:
            start = time.perf_counter()
            if how is not None and module.__class__ is not Point:
                state.args = (apart(state.args[0], whole, given, how), *state.args[1:])
            if state.replacement is None:
                state.output = proceed(state.args, state.kwargs)
            else:
                state.output = _replacement(frames, state)
            state.seconds = time.perf_counter() - start
            if module.__class__ is not Point:
                given = state.output
                how = lies(module, "out", given)
                whole = state.output = joined(given, how, edited)
        after_call(frames, state)
        return apart(state.output, whole, given, how)
    except Exception as e:
        state.error = e
        for probe, frame in entered:
            probe.failed(frame, e)
        raise
    finally:
        for probe, frame in frames:
            probe._close(frame)


def before_call(frames: Frames, state: CallState, entered: Frames | None = None) -> None:
    """Let all probes see a call that is about to run."""
    for probe, frame in frames:
        probe.answer(frame)
    for probe, frame in frames:
        if state.answered and probe.order == EDITS:
            continue
        if entered is not None:
            entered.append((probe, frame))
        if probe.order == LOOKS or not HUB.trackers:
            probe.entered(frame)
            continue
        lost, skipped, replacement = _Lost((state.args, state.kwargs)), state.skipped, state.replacement
        probe.entered(frame)
        runs = state.skipped is skipped and state.replacement is replacement
        lost.tell((state.args, state.kwargs) if runs else (), frame)


def after_call(frames: Frames, state: CallState) -> None:
    """Let all probes see a call that has run."""
    for probe, frame in frames:
        if state.answered and probe.order == EDITS:
            continue
        if probe.order == LOOKS or not HUB.trackers:
            probe.left(frame)
            continue
        lost = _Lost(state.output)
        probe.left(frame)
        lost.tell(state.output, frame)


class _Lost:
    """Tells those that follow values which of them a change has taken away."""

    def __init__(self, value: object) -> None:
        self.had = [(r, r.keys_of(value)) for r in HUB.active_trackers()]

    def tell(self, value: object, frame: Frame) -> None:
        for tracker, marks in self.had:
            gone = marks - tracker.keys_of(value) if marks else marks
            if gone:
                tracker.cut(gone, str(frame.address))


def _replacement(frames: Frames, state: CallState) -> Any:
    """Run what was swapped in; what it calls has addresses below the place where it runs."""
    path = mode.module_path
    before = [(p, p.enter_replacement(state.replacement)) for p, _ in frames]
    # As plain text: whatever is called next is then taken for the module in this place.
    mode.module_path = str(path)
    try:
        # Its parts are known to nobody, so all modules are looked at.
        with register_around(None, around_module):
            return state.replacement(*state.args, **state.kwargs)
    finally:
        mode.module_path = path
        for probe, was in before:
            probe.leave_replacement(was)


def _replace_operator(state: CallState, call: Call) -> Any:
    """Run a function in an operator's place, on the arguments that are not at their defaults."""
    args, schema = list(state.args), call.op.schema.args
    while args and _is(args[-1], schema[len(args) - 1].default):
        args.pop()
    mode.unobserved += 1
    try:
        result = state.replacement(*args)
    except TypeError as e:
        names = ", ".join(a.name for a in schema[: len(args)])
        e.add_note(f"It was swapped in for the operator {call.op.name}, and called with ({names}).")
        raise
    finally:
        mode.unobserved -= 1
    for tracker in HUB.active_trackers():
        tracker.spread(state.args, result)
    return result


def _is(value: object, default: object) -> bool:
    """Whether an argument is the default; values of tensors are not asked for."""
    return value is default or (
        value.__class__ is default.__class__ and isinstance(value, (bool, int, float, str, tuple)) and value == default
    )


def mutated(call: Call) -> list[Any]:
    """The arguments that an operator's kernel writes into."""
    names = call.op.schema.names
    return [call.args[names.index(n)] for n in call.op.mutates]


def storages(value: object) -> set[Any]:
    """The memory of all tensors in a value."""
    return {t._storage for _, t in values.tensors(value)}
