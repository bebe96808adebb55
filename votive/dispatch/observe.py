"""Observers: whoever attaches here sees every call. With none attached nothing is paid."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..backends.cpu.native.loader import module as native
from ..core.mode import mode
from ..ops.operator import Op
from .build import prepare
from .plan import Plan
from .state import state

if TYPE_CHECKING:
    from ..tensor import Tensor


class Call:
    """What observers see of one call: operator, plan, arguments, result, seconds.

    Before the call an observer may set `args`, and the operator then runs on these. `into` is what
    an in-place call or `out=` writes into, and None for all others.
    """

    __slots__ = ("args", "into", "op", "plan", "result", "seconds")

    def __init__(self, op: Op, plan: Plan, args: tuple[Any, ...], into: Any = None) -> None:
        self.op, self.plan, self.args, self.into = op, plan, args, into
        self.result: Any = None
        self.seconds = math.nan

    @property
    def module_path(self) -> str:
        return mode.module_path

    def __repr__(self) -> str:
        return f"<call {self.op.name} -> {getattr(self.result, 'shape', None)}>"


Run = Callable[[Plan, tuple[Any, ...]], Any]


def observed(plan: Plan, args: tuple[Any, ...], run: Run, into: Any = None) -> Any:
    if plan.backend.name == "trace":
        return run(plan, args)  # a function being turned into a formula: nothing is computed yet
    event = Call(plan.op, plan, args, into)
    watching = state.observers
    for o in watching:
        instead = o.before(event)
        if instead is not None:
            event.result = instead
    if event.result is None:
        start = time.perf_counter()
        try:
            if event.args is not args:
                event.plan, event.args = prepare(plan.op, event.args)
            event.result = run(event.plan, event.args)
        except Exception as e:
            for o in watching:
                o.failed(event, e)
            raise
        event.seconds = time.perf_counter() - start
    for o in watching:
        replaced = o.after(event)
        if replaced is not None:
            event.result = replaced
    return event.result


def was_read(tensor: Any) -> None:
    """Tell observers that a tensor's numbers were handed to Python."""
    for o in state.observers:
        o.read(tensor)


def was_made(tensor: Any) -> None:
    """Tell observers that a tensor was made of Python's numbers, by no operator."""
    for o in state.observers:
        o.made(tensor)


class Observer:
    """Base of everything that watches calls; use it as a context manager.

    `before(call)` sees the arguments, may set others, and may return a result: then nothing is
    computed. `after(call)` sees the result and may return another one; `failed(call, error)` sees
    an error. What is returned for an in-place call is written into its tensor.
    """

    follows_copies = False  # whether it sees the copies that autograd makes for itself, too
    opens_fused = True  # whether whole networks in one operator run as their single steps for it

    def before(self, call: Call) -> Any: ...

    def after(self, call: Call) -> Any: ...

    def failed(self, call: Call, error: Exception) -> None: ...

    def refused(self, op: Op, args: tuple[Any, ...], error: Exception) -> None:
        """Arguments that an operator does not take, so that there was no call."""

    def read(self, tensor: Tensor) -> None:
        """A tensor's numbers are handed to Python: `item`, `tolist`, `numpy`, a condition."""

    def made(self, tensor: Tensor) -> None:
        """A tensor was made of Python's numbers, by no operator."""

    def __enter__(self) -> Any:
        attach(self)
        return self

    def __exit__(self, *exc: object) -> None:
        detach(self)


def attach(observer: Observer) -> None:
    """Let `observer` see every call from now on."""
    state.observers = (*state.observers, observer)
    refresh()


def detach(observer: Observer) -> None:
    """Stop an observer."""
    state.observers = tuple(o for o in state.observers if o is not observer)
    refresh()


def refresh(inference: int = 0, autocast: int = 0, functions: int = 0, levels: int = 0) -> None:
    """Recompute whether calls must take the general way."""
    with _lock:
        state.inference += inference
        state.autocast += autocast
        state.function_modes += functions
        state.levels += levels
        counts = state.inference + state.autocast + state.function_modes + state.levels
        # Without the native module calls do not notice by themselves that a class of tensors answers them.
        state.unusual = bool(state.observers) or counts > 0 or (native is None and state.subclasses)
        if native is not None:
            native.set_unusual(state.unusual)


_lock = threading.Lock()
