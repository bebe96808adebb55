"""`votive.compile`: a function, a module or a whole step, traced once per signature and run as a graph from then on."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

from ..backends.base import listeners
from ..core.mode import mode
from ..dispatch import state
from . import dynamic
from .again import Kept
from .entry import Entry
from .finish import finish
from .guards import Guards, Place, modes
from .look import looking
from .structure import Unknown, containers, flatten, labels
from .trace import Tracer, Untraceable, running
from .units import Units, split
from .watch import CALLS, Break, Stop, Watch

LIMIT = 8  # versions of one program; from then on it is run as it is
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


@dataclass(frozen=True)
class Options:
    """What a caller of `compile` asked for."""

    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str = "default"
    first: bool = False  # whether the first call is computed by the graph, too


class _Switch(threading.local):
    off = 0


_switch = _Switch()
_compiled: weakref.WeakSet[Any] = weakref.WeakSet()


class Compiled:
    """A program that is traced once per signature. Calling it does what the program does."""

    def __init__(self, fn: Callable[..., Any], options: Options, piece: bool = False) -> None:
        self.fn, self.options, self.piece = fn, options, piece
        self.entries: dict[Any, list[Entry]] = {}
        self.split: Callable[..., Any] | None = None  # its pieces, where it is not one graph
        self.units = Units(self._part)
        self.parts: list[Compiled] = []  # what it was split into, and what those call
        self.breaks: list[Break] = []
        self.recompilations: list[str] = []
        self.eager = ""  # why it is not one graph
        self.refused: dict[Any, str] = {}  # why it is run as it is while somebody looks inside
        self.seen: dict[Any, list[tuple[Any, ...]]] = {}  # sizes of arguments that versions were made for
        self.static: set[Any] = set()  # forms of arguments for which only single sizes can be compiled
        self.specialised: list[str] = []  # why
        self._lock = threading.RLock()
        for part in ("nn.compiled", "optim.compiled"):  # say how modules and optimizers are gone through
            import_module(f"{__name__.split('.')[0]}.{part}")
        functools.update_wrapper(self, fn, updated=())
        _compiled.add(self)

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self if owner is None else MethodType(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if state.observers or _switch.off or mode.special:
            return self.fn(*args, **kwargs)  # somebody looks inside, or an outer program is being traced
        structure, flat = flatten(args, kwargs)
        now = modes()
        if state.lookers:
            looks = looking()
            if looks is None:
                return self.fn(*args, **kwargs)
            now = (*now, looks)
        versions = self.entries.get((structure, now))
        if versions is not None:
            for entry in versions:
                tensors = entry.check(flat)
                if tensors is not None:
                    return entry.run(tensors)
        if mode.unobserved or (structure, now) in self.refused:
            return self.fn(*args, **kwargs)
        if self.eager:
            return self._run_split(args, kwargs)
        return self._compile(structure, now, flat, args, kwargs)

    def _run_split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a program that is not one graph: as compiled pieces, with plain Python between them."""
        if self.split is None:
            with self._lock:
                self.split = split(self.fn, self.breaks[0], self.units)
        return self.split(*args, **kwargs)

    def _part(self, fn: Callable[..., Any]) -> Compiled:
        """Compile a piece of a split program, or something that it calls."""
        made = Compiled(fn, dataclasses.replace(self.options, fullgraph=False), piece=True)
        if self.breaks and isinstance(fn, MethodType) and fn.__func__ is self.breaks[0].fn:
            made.breaks, made.eager = self.breaks[:1], self.eager  # where it ends is known
        self.parts.append(made)
        return made

    def _compile(
        self, structure: Any, now: Any, flat: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        with self._lock:
            versions = self.entries.setdefault((structure, now), [])
            versions[:] = [e for e in versions if not e.guards.gone()]
            if len(versions) >= LIMIT:
                return self._too_often(versions, flat, args, kwargs)
            if versions:
                self.recompilations.append(_latest(versions).guards.why(flat))
            entry = self._for_any_size(structure, now, flat, args, kwargs)
            tensors = None if entry is None else entry.check(flat)
            if entry is not None and tensors is not None:
                versions.append(entry)  # those for one size come first: they can be replayed as they are
                return entry.run(tensors)
            result, entry = trace(self.fn, args, kwargs, flat, self.options, self.breaks)
            if entry is None and state.lookers:
                self.refused[structure, now] = self.breaks[-1].why
            elif entry is None:
                self.eager = self.breaks[0].why
            else:
                versions.insert(0, entry)
            return result

    def _for_any_size(
        self, structure: Any, now: Any, flat: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Entry | None:
        """A version for sizes that change, where that is wanted and possible."""
        seen = self.seen.setdefault((structure, now), [])
        mine = dynamic.signature(flat)
        if self.options.dynamic is False or state.lookers or (structure, now) in self.static:
            return None
        wanted = dynamic.everything(flat) if self.options.dynamic else dynamic.changed(seen, mine)
        insisted = dynamic.marked(flat, wanted)
        seen.append(mine)
        if not wanted:
            return None
        entry, why = dynamic.compiled(self.fn, args, kwargs, flat, self.options, wanted, finish, _parameters(self.fn))
        if insisted:
            dynamic.check_marks(entry, why, insisted, flat)
        if entry is None:
            self.specialised.append(why)
            if not self.options.dynamic:
                self.static.add((structure, now))
        return entry

    def _too_often(
        self, versions: list[Entry], flat: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run as it is what has been compiled often enough."""
        why = f"compiled {LIMIT} times, last because {_latest(versions).guards.why(flat)}"
        if not self.piece and not self.warned:
            self.warned = True
            warnings.warn(f"compile: {self._name()} was {why}; what is new runs as it is from now on.", stacklevel=4)
        return self.fn(*args, **kwargs)

    warned = False

    def _name(self) -> str:
        return getattr(self.fn, "__qualname__", type(self.fn).__name__)

    def reset(self) -> None:
        """Forget every version."""
        self.entries.clear()
        self.breaks.clear()
        self.recompilations.clear()
        self.eager = ""
        self.refused.clear()
        self.seen.clear()
        self.static.clear()
        self.specialised.clear()
        self.parts.clear()
        self.split = None
        self.units = Units(self._part)
        self.warned = False

    def __repr__(self) -> str:
        return f"<compiled {self._name()}>"


def _latest(versions: list[Entry]) -> Entry:
    return max(versions, key=lambda e: e.number)


def trace(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    flat: tuple[Any, ...],
    options: Options,
    breaks: list[Any],
) -> tuple[Any, Entry | None]:
    """Run a program once while it is written down: (its result, the compiled version or None)."""
    tracer, guards = Tracer(), Guards()
    watch = Watch(tracer, guards, options.fullgraph)
    watch.replays = options.mode != "max-autotune-no-cudagraphs"
    names = _parameters(fn)
    for i, (leaf, label) in enumerate(zip(flat, labels(names, args, kwargs), strict=True)):
        watch.reached(leaf, Place("argument", i, label))
    for c in containers([*args, *kwargs.values()])[1:]:
        watch.given[id(c)] = c
    kept = Kept(watch) if options.first else None
    watch.outer[id(fn)] = fn
    if isinstance(fn, MethodType):
        watch.outer[id(fn.__self__)] = fn.__self__
    with tracer:
        try:
            result = watch.call(0, fn, *args, **kwargs)
            entry = None if tracer.broken else _finished(watch, result, options)
        except Stop as e:
            raise RuntimeError(str(e)) from None
    breaks.extend(watch.breaks)
    if kept is not None and entry is not None:
        result = kept.run(entry, flat, result)
    return result, entry


def _finished(watch: Watch, result: object, options: Options) -> Entry | None:
    try:
        return finish(watch, result, options)
    except (Untraceable, Unknown) as e:
        watch.tracer.give_up(str(e))
        return None


def _parameters(fn: Callable[..., Any]) -> list[str]:
    target = getattr(fn, "forward", fn)
    try:
        return [p.name for p in inspect.signature(target).parameters.values()]
    except (TypeError, ValueError):
        return []


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "votive",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function or module that is traced once per signature and runs as a graph of fused kernels afterwards.

    >>> @votive.compile
    ... def gate(x, y):
    ...     return votive.sigmoid(x) * y + 1
    >>> gate(votive.zeros(2), votive.ones(2))
    tensor([1.5000, 1.5000])
    """
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"compile: unrecognized mode={mode!r}, should be one of: {', '.join(MODES)}.")
    if mode is not None and options is not None:
        raise RuntimeError(
            "compile: either mode or options can be specified, but both can't be specified at the same time."
        )
    if backend not in ("votive", "inductor", "eager"):
        raise RuntimeError(f"compile: there is no backend {backend!r}; leave it out.")
    if options:
        raise RuntimeError(f"compile: unknown options {sorted(options)}.")
    chosen = Options(fullgraph, dynamic, mode or "default")

    def wrap(fn: Callable[..., Any]) -> Any:
        if not callable(fn):
            raise TypeError(f"compile: expected a function or a module, got {type(fn).__name__}.")
        if disable or backend == "eager":
            return fn
        handler = WRAPPERS.get(type(fn).__call__)
        return Compiled(fn, chosen) if handler is None else handler(fn, chosen)

    return wrap if model is None else wrap(model)


WRAPPERS: dict[Any, Callable[[Any, Options], Any]] = {}  # `type(x).__call__` -> what `compile` gives for such objects


def reset() -> None:
    """Forget everything that was compiled."""
    for c in list(_compiled):
        c.reset()


def is_compiling() -> bool:
    """Whether a program is being traced right now, in this thread."""
    return running.tracer is not None


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is always run as it is, with all that it calls, also inside of compiled programs.

    With `recursive=False`, compiled functions that it calls run compiled. `explain` says the `reason`.
    """

    def wrap(fn: Callable[..., Any]) -> Any:
        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            _switch.off += recursive
            try:
                return fn(*args, **kwargs)
            finally:
                _switch.off -= recursive

        run._votive_disabled = reason or True  # type: ignore[attr-defined]
        return run

    return wrap if fn is None else wrap(fn)


CALLS[Compiled.__call__] = lambda watch, c, args, kwargs: watch.call(watch.line, c.fn, *args, **kwargs)
listeners.append(lambda *_: reset())
__all__ = ["CALLS", "WRAPPERS", "Compiled", "FunctionType", "Options", "compile", "disable", "is_compiling", "reset"]
