"""Calls of modules with hooks while a program is traced.

Hooks of users become part of the graph, as any function that the program calls; a guard sees whether there are others.
Those that stand around calls and only look are shown the values after each run, see `compiler/look.py`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from types import MethodType
from typing import Any

from ..compiler.guards import Place
from ..compiler.look import Event
from ..compiler.structure import Template, Unknown
from ..compiler.watch import Watch
from ..core.mode import mode
from .fast_path import HOOKS
from .global_hooks import GLOBAL
from .hooks import Around, Call
from .module import Module


def _looks(hook: Any) -> bool:
    """Whether a hook stands around calls and can be shown them later."""
    return isinstance(hook, Around) and hasattr(hook.fn, "traced")


def own_hooks(module: Module) -> tuple[Any, ...]:
    """The hooks of users on a module, by which it is known whether there are others."""
    own = module.__dict__
    return tuple(
        [(k, h) for t in HOOKS for k, h in own[t].items() if not _looks(h)] if any(own[t] for t in HOOKS) else ()
    )


def global_hooks() -> tuple[Any, ...]:
    """The hooks of users for all modules."""
    return tuple([(k, g) for k, g in GLOBAL.items() if not hasattr(g.hook, "traced")])


def guard_hooks(watch: Watch, module: Module) -> None:
    """Let a graph hold only while the same hooks are there."""
    watch.guards.equal(Place("hooks", global_hooks, "hooks of all modules", global_hooks, by="call"), global_hooks())
    if not watch.is_outer(module):
        return
    own = module.__dict__
    if any(own[t] for t in HOOKS):
        hooks = functools.partial(own_hooks, module)
        watch.guards.equal(Place("hooks", hooks, "hooks", module, by="call"), own_hooks(module))
    else:
        for table in HOOKS:
            watch.guards.empty(Place("hooks", own[table], table, module))


def can_trace_hooks(module: Module) -> bool:
    """Whether the hooks around a module's call can be part of a graph."""
    if any(g.kind not in ("forward", "forward_pre", "around") or g.always for g in GLOBAL.values()):
        return False
    if any(g.kind == "around" and not hasattr(g.hook, "traced") for g in GLOBAL.values()):
        return False
    if module._backward_hooks or module._backward_pre_hooks or module._forward_hooks_always_called:
        return False
    return all(_looks(h) or not isinstance(h, Around) for h in module._forward_hooks.values())


class HookedCall(Call):
    """A call whose hooks and `forward` are traced."""

    def __init__(self, watch: Watch, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__(module, args, kwargs)
        self.watch = watch

    def _call(self, hook: Any, *args: Any) -> Any:
        watch = self.watch
        for part in (hook, *_parts(hook)):
            if hasattr(part, "__dict__") or isinstance(part, (list, dict, set)):
                watch.outer[id(part)] = part
        return watch.call(watch.line, hook, *args)

    def _run_inside(self, around: list[Any]) -> Any:
        watch, (fn, *inner) = self.watch, around
        if inner:
            watch.stop("several stand around one call")
            return super()._run_inside(around)
        if any(hasattr(v, "get_seq_length") for v in (*self.args, *self.kwargs.values())):
            watch.stop(f"somebody looks at a {type(self.module).__name__} that is given a cache")
        self.given: list[tuple[Any, int]] = []
        event = Event(mode.module_path, functools.partial(fn.traced.show, self.module))
        outer, watch.events = watch.events, event.inner
        tracing, mode.tracing = mode.tracing, self
        try:
            seen = fn.traced(self.module, self.args, self.kwargs, self._proceed)
        finally:
            watch.events, mode.tracing = outer, tracing
        if seen.args or seen.kwargs:
            watch.seen += self.given
        self.looks_at(seen.output)
        event.args, event.kwargs, event.result, event.more = seen.args, seen.kwargs, seen.output, seen.more
        watch.events.append(event)
        watch.keeps_graph = watch.keeps_graph or seen.keeps_graph
        return seen.result

    @contextlib.contextmanager
    def recorded(self, edit: Any) -> Iterator[None]:
        """Inside, what an edit computes is a part of the program, and nobody else sees it."""
        watch = self.watch
        watch.reached(edit.value, Place("edit", edit, "value", edit, by="getattr"))
        mode.unobserved += 1
        watch.tracer.unobserved += 1
        try:
            yield
        finally:
            mode.unobserved -= 1
            watch.tracer.unobserved -= 1

    def call(self, fn: Any, *args: Any) -> Any:
        """Call the function of an edit as a part of the program."""
        return self._call(fn, *args)

    def looks_at(self, value: Any) -> None:
        """Note tensors that somebody looks at as they are now."""
        self.watch.seen += self._versions(value)

    def _versions(self, value: Any) -> list[tuple[Any, int]]:
        tensors: list[Any] = []
        with contextlib.suppress(Unknown):
            Template(value, self.watch.is_outer, tensors)
        return [(t, t._writes) for t in tensors]

    def _proceed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.args, self.kwargs = args, kwargs
        self.given = self._versions((args, kwargs))
        return self._run()

    def _run(self) -> Any:
        watch = self.watch
        self.result = watch.call(watch.line, watch.attr(self.module, "forward"), *self.args, **self.kwargs)
        for _, hook, with_kwargs, _ in self._forward_hooks():
            self._run_forward_hook(hook, with_kwargs)
        return self.result


def _parts(hook: Any) -> tuple[Any, ...]:
    """What a hook brings along."""
    if isinstance(hook, MethodType):
        return (hook.__self__,)
    if isinstance(hook, functools.partial):
        return (hook.func, *_parts(hook.func), *hook.args, *hook.keywords.values())
    return ()
