"""Watches calls and keeps them as events: operators, nodes of the backward pass, blocks and modules. Draws nothing."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..autograd.graph import BaseNode
from ..core.mode import mode
from ..dispatch.observe import Call, Observer
from ..dispatch.state import state
from ..tensor import Tensor
from ..utils import flop_formulas
from .events import FunctionEvent, Interval

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _stack() -> list[str]:
    """The lines of the program that led here, the innermost first, without votive's own."""
    found, frame = [], sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(HERE):
            found.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _new_bytes(args: tuple[Any, ...], out: Any) -> tuple[int, int]:
    """Bytes of results that are not views of arguments, on the CPU and on a GPU."""
    given = {id(a._storage.root) for a in args if isinstance(a, Tensor)}
    sizes = [0, 0]
    for t in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(t, Tensor) and id(t._storage.root) not in given:
            sizes[t.device.type != "cpu"] += t.numel() * t.element_size()
    return sizes[0], sizes[1]


class Recorder(Observer):
    """One recording, from `start` to `stop`."""

    def __init__(self, *, shapes: bool, memory: bool, stacks: bool, flops: bool, modules: bool, device: bool) -> None:
        self.shapes, self.memory, self.stacks, self.flops = shapes, memory, stacks, flops
        self.modules, self.device = modules, device
        self.events: list[FunctionEvent] = []
        self._ids = itertools.count()
        self.begin = time.perf_counter()
        self.wall = time.time()
        self._threads = threading.local()
        self._timed: list[tuple[FunctionEvent, Any, Any]] = []
        self._watch = _Backward(self, None)
        self._optimizers: list[Any] = []
        self._world: Any = None

    # --- where events go ---

    def open(self, name: str, kind: str) -> FunctionEvent:
        """An event that begins now, inside those that are open in this thread."""
        stack = self._open
        thread = threading.get_native_id()
        event = FunctionEvent(next(self._ids), name, kind, 0.0, thread)
        event.cpu_parent = stack[-1] if stack else None
        if stack:
            stack[-1].cpu_children.append(event)
        self.events.append(event)
        stack.append(event)
        if self.stacks:
            event.stack = _stack()
        if self.modules:
            event.module = str(mode.module_path)
        now = self._now()
        event.time_range = event.time_range._replace(start=now, end=now)
        return event

    def close(self, event: FunctionEvent, seconds: float | None = None) -> None:
        """The event ends now, or took `seconds` until it did."""
        now = self._now()
        start = event.time_range.start
        if seconds is not None and seconds == seconds:
            start = max(start, now - seconds * 1e6)
        event.time_range = event.time_range._replace(start=start, end=now)
        stack = self._open
        while stack and stack.pop() is not event:
            pass  # what was left open by an error inside

    @property
    def _open(self) -> list[FunctionEvent]:
        try:
            return self._threads.stack
        except AttributeError:
            self._threads.stack = []
            return self._threads.stack

    def _now(self) -> float:
        return (time.perf_counter() - self.begin) * 1e6

    # --- what is seen ---

    def before(self, call: Call) -> None:
        name = call.op.name
        event = self.open(f"votive::{name}" if name.startswith("_") else f"aten::{name}", "cpu_op")
        if self.shapes:
            event.input_shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in call.args]
            event.concrete_inputs = ["" if isinstance(a, Tensor) else str(a) for a in call.args]
        if self.device and call.plan.backend.name == "cuda":
            event.use_device = "cuda"
            self._timed.append((event, self._mark(), None))

    def after(self, call: Call) -> None:
        stack = self._open
        if not stack:
            return
        event = stack[-1]
        if event.use_device and self._timed and self._timed[-1][0] is event:
            self._timed[-1] = (event, self._timed[-1][1], self._mark())
        self.close(event, call.seconds)
        if self.memory:
            event.cpu_own, event.device_bytes = _new_bytes(call.args, call.result)
        if self.flops:
            event.flops = flop_formulas.count(call.op.name, call.args, call.result)

    def failed(self, call: Call, error: Exception) -> None:
        if self._open:
            self.close(self._open[-1])

    @staticmethod
    def _mark() -> Any:
        from ..cuda import Event

        mark = Event(enable_timing=True)
        mark.record()
        return mark

    def communicated(self, ran: Any) -> None:
        """What several ranks did together, which another thread may have done beside the program."""
        if self._world is not None and ran.group not in self._world.groups.values():
            return  # of another rank, which is a thread of this process
        parent, thread = None, threading.get_native_id()
        parts = [(ran.call.op, ran.start, ran.end)]
        if ran.met > ran.start:
            parts.append((f"{ran.call.op}.wait", ran.start, ran.met))
        for name, start, end in parts:
            event = FunctionEvent(next(self._ids), f"dist::{name}", "communication", 0.0, thread)
            event.time_range = Interval((start - self.begin) * 1e6, (end - self.begin) * 1e6)
            event.row = ran.row
            stack = self._open
            event.cpu_parent = parent or (stack[-1] if stack and not ran.row else None)
            if event.cpu_parent is not None:
                event.cpu_parent.cpu_children.append(event)
            self.events.append(event)
            parent = parent or event
        assert parent is not None, "there is one part at least"
        parent.details = {
            "Call": str(ran.call),
            "Bytes": ran.nbytes,
            "Process Group Name": ran.group.group_name,
            "Process Group Ranks": ran.group.ranks,
            "Group size": ran.group.size(),
        }

    # --- around it ---

    def start(self) -> None:
        """Begin to watch."""
        from ..optim.step_hooks import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        opened: list[FunctionEvent] = []

        def begins(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            opened.append(self.open(f"Optimizer.step#{type(optimizer).__name__}.step", "user_annotation"))

        def ends(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if opened:
                self.close(opened.pop())

        self._optimizers = [register_optimizer_step_pre_hook(begins), register_optimizer_step_post_hook(ends)]
        with _WATCHES:
            self._watch = state.watcher = _Backward(self, state.watcher)
        from ..distributed.group import OBSERVERS
        from ..distributed.world import world

        self._world = world()
        OBSERVERS.append(self.communicated)
        self.__enter__()

    def stop(self) -> None:
        """Stop watching, and read the clocks of the GPU."""
        self.__exit__()
        self._watch.leave()
        from ..distributed.group import OBSERVERS

        OBSERVERS.remove(self.communicated)
        for handle in self._optimizers:
            handle.remove()
        for event in reversed(self._open):
            event.time_range = event.time_range._replace(end=self._now())
        self._open.clear()
        for event, begins, ends in self._timed:
            if ends is not None:
                ends.synchronize()
                event.device_own = begins.elapsed_time(ends) * 1e3
        self._timed.clear()


_WATCHES = threading.Lock()


class _Backward:
    """Nodes of the backward pass as events; whoever watched before goes on watching."""

    def __init__(self, recorder: Recorder, outer: Any) -> None:
        self.recorder, self.outer = recorder, outer
        self.open: dict[int, FunctionEvent] = {}

    def before(self, node: BaseNode, grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self.open[id(node)] = self.recorder.open(node.name(), "cpu_op")
        return None if self.outer is None else self.outer.before(node, grads)

    def after(self, node: BaseNode, results: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...] | None:
        event = self.open.pop(id(node), None)
        if event is not None:
            self.recorder.close(event)
        return None if self.outer is None else self.outer.after(node, results, grads)

    def leave(self) -> None:
        """Watch no more. Recordings of ranks that are threads end in any order, not the last one first."""
        with _WATCHES:
            if state.watcher is self:
                state.watcher = self.outer
                return
            inner = state.watcher
            while inner is not None and getattr(inner, "outer", None) is not self:
                inner = getattr(inner, "outer", None)
            if inner is not None:
                inner.outer = self.outer


active: list[Recorder] = []  # the recording that runs, if any


class record_function:
    """A block, or a function as its decorator, that a running profiler shows under a name.

    >>> with votive.profiler.profile() as prof, votive.profiler.record_function("block"):
    ...     y = votive.ones(3) + 1
    >>> [row.key for row in prof.key_averages() if row.is_user_annotation]
    ['block']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._inside: list[tuple[Recorder, FunctionEvent]] = []

    def __enter__(self) -> record_function:
        if active:
            event = active[-1].open(self.name, "user_annotation")
            if self.args is not None:
                event.concrete_inputs = [self.args]
            self._inside.append((active[-1], event))
        return self

    def __exit__(self, *exc: object) -> None:
        if self._inside:
            recorder, event = self._inside.pop()
            recorder.close(event)

    def __call__(self, fn: Callable[..., Any]) -> Any:
        import functools

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return wrapped
