"""The eye of the engine: sees every call below a model, with its address. Knows no purpose.

A probe is attached to a model for the time of a `with` block, in the thread that opens it. It keeps
a stack of frames, one per running call; subclasses look at them and may change what they hold.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Self

from ..core.mode import mode
from ..nn import Module
from ..nn.hooks import register_around
from ..nn.points import Point
from ..ops.registry import Op
from . import values
from .address import Address, Pattern
from .probe_hub import HUB, LOOKS, UNSET, CallState, around_module
from .targets import uncompiled


def _shared(name: str) -> Any:
    """A part of a frame that all probes at the call share."""
    return property(lambda frame: getattr(frame.state, name), lambda frame, value: setattr(frame.state, name, value))


class Frame:
    """One running call: a module's, or an operator's.

    `args`, `kwargs` and, when it is over, `output` may be replaced by a probe. Before the call,
    `skip(value)` lets nothing run, and `swap(module)` lets another module run instead, or a
    function in an operator's place. `shown` names the operator that counts where a call is made
    only to show its result.
    """

    __slots__ = ("address", "cache", "depth", "kind", "ops", "parent", "past", "state", "subject")

    args = _shared("args")
    kwargs = _shared("kwargs")
    output = _shared("output")
    error = _shared("error")
    seconds = _shared("seconds")
    skipped = _shared("skipped")
    replacement = _shared("replacement")
    shown = _shared("shown")

    def __init__(
        self, address: Address, kind: str, subject: Any, parent: Frame | None, state: CallState | None = None
    ) -> None:
        self.address, self.kind, self.subject, self.parent = address, kind, subject, parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.state = CallState() if state is None else state
        self.ops: Counter[str] = Counter()
        self.cache: Any = None if parent is None else parent.cache
        self.past: int = 0 if parent is None else parent.past
        if kind == "module":
            self._meet_cache()

    def _meet_cache(self) -> None:
        """Note a cache that no call around this one was given, and how much of a text it holds."""
        cache = cache_of(self.args, self.kwargs)
        if cache is None or cache is self.cache:
            return
        self.cache = cache
        # Where the call around has made the cache, parts before this one may have filled it.
        layer = None if _given_ids(self) else _layer_of(self)
        if self.parent is None or layer is not None or _given_ids(self):
            self.past = int(cache.get_seq_length(layer) if layer else cache.get_seq_length())

    @property
    def is_module(self) -> bool:
        return self.kind == "module"

    @property
    def name(self) -> str:
        """The class of the module that runs, or the operator's name."""
        if not self.is_module:
            return str(self.subject.name)
        return type(self.subject if self.replacement is None else self.replacement).__name__

    def skip(self, value: object) -> None:
        """Let the call not run and give `value`."""
        self.skipped, self.replacement = value, None

    def swap(self, module: object) -> None:
        """Let another module run in place of this one."""
        self.replacement, self.skipped = module, UNSET

    def answer(self, value: object) -> None:
        """Let the call not run, nor any edit of it, and give `value`."""
        self.skip(value)
        self.state.answered = True

    def __repr__(self) -> str:
        return f"<{self.kind} {self.address} ({self.name})>"


class Probe:
    """Base of everything that looks into a model; use it as a context manager.

    Override `entered`, `left` and `failed`. With `ops`, operators are seen too. `only` is the
    modules to look at, for probes that know them: all others then run as fast as ever. Of the places in
    decoders it sees those that `sites` mean. `order` says when it has its turn among the probes at one
    call: see `votive.glass.probe_hub`.
    """

    order = LOOKS
    # Whether it is for runs of the block's own: it then says that all were in another thread.
    for_runs = False

    def __init__(
        self, model: Module, *, ops: bool = False, only: Iterable[Any] | None = None, sites: Iterable[Pattern] = ()
    ) -> None:
        self.model = model = uncompiled(model)
        self.runs = 0  # outermost calls so far
        self.stack: list[Frame] = []
        self._ops = ops
        self._sites = [p for p in sites if p.wants_sites]
        self._known_sites: dict[str, bool] = {}
        # Calls of what is around them too, or each of them would be an outermost call.
        self._only = None if only is None or ops else _with_holders(model, only)
        self._calls: Counter[str] = Counter()
        self._thread = 0
        self._elsewhere = False  # whether the model ran in another thread
        self._strip: tuple[str, str] = ("", "")
        self._closing = contextlib.ExitStack()
        self._replacement: Any = None  # what was swapped in and is about to be called
        self._replacements = 0  # how many of those run

    @property
    def past(self) -> int:
        """Positions that the cache of the nearest call with one held when that call began."""
        return self.stack[-1].past if self.stack else 0

    # --- what subclasses say ------------------------------------------------------------------

    def answer(self, frame: Frame) -> None:
        """A call is about to run: `frame.answer(value)` settles it before anyone edits it."""

    def entered(self, frame: Frame) -> None:
        """A call is about to run."""

    def left(self, frame: Frame) -> None:
        """A call has run; `frame.output` is what it gave and what will be given on."""

    def failed(self, frame: Frame, error: Exception) -> None:
        """A call raised an error, which goes on."""

    def finished(self, frame: Frame) -> None:
        """An outermost call is over, with a result or with an error."""

    # --- compiled programs --------------------------------------------------------------------

    # Whether it keeps tensors as they are, together with autograd's graph.
    keeps_graph = True

    def compiled_as(self) -> Any:
        """What a compiled program must show it, as a value that can be hashed; None: it must see the run itself."""
        return None

    def reads(self, frame: Frame, side: str) -> bool:
        """Whether it looks at what goes in or comes out of a call."""
        return True

    # --- attaching ----------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._thread:
            raise RuntimeError(f"{type(self).__name__}: it is in use already; make another one.")
        self._thread = threading.get_ident()
        with contextlib.ExitStack() as stack:
            for module in [None] if self._only is None else self._only.values():
                stack.enter_context(register_around(module, around_module))
            HUB.add(self)
            stack.callback(HUB.remove, self)
            if self._sites:
                HUB.watch_points(self)
                stack.callback(HUB.unwatch_points, self)
            if self._ops:
                HUB.watch_operators()
                stack.callback(HUB.unwatch_operators)
            # Nothing stays attached if something above failed.
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._thread = 0
        self.stack.clear()
        self._closing.close()
        if self.for_runs and self._elsewhere and not self.runs:
            warnings.warn(
                f"{type(self).__name__.lower()}: the model ran only in another thread, and a block works in the thread "
                "that enters it: nothing was seen or changed. Enter the block in the thread that runs the model.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._elsewhere = False

    def mark(self) -> Any:
        """What counts runs, for `rewind`."""
        return self.runs

    def rewind(self, mark: Any) -> None:
        """Take back the runs since a mark: they are made again, and are the same ones."""
        self.runs = mark

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Inside, nothing is seen by any probe: for what one computes itself."""
        with unobserved():
            yield

    @property
    def inactive(self) -> bool:
        return threading.get_ident() != self._thread

    # --- modules ------------------------------------------------------------------------------

    def takes(self, module: Module) -> bool:
        """Whether it sees the call of a module that is about to be made."""
        if self.inactive:
            self._elsewhere = self._elsewhere or module is self.model
            return False
        if module.__class__ is Point:
            return bool(self.stack) and self._means(module.address)
        if self._replacement is module:
            self._replacement = None  # its call is the one in whose place it runs
            return False
        if self._only is not None and id(module) not in self._only and not self._replacements:
            return False
        return bool(self.stack) or self._begins(module)

    def wants(self, address: str) -> bool:
        """Whether it asks for a place in a decoder now."""
        return not mode.unobserved and not self.inactive and bool(self.stack) and self._means(address)

    def _means(self, address: str) -> bool:
        found = self._known_sites.get(address)
        if found is None:
            found = self._known_sites[address] = any(p.may_mean(address) for p in self._sites)
        return found

    def _frame(self, module: Module, state: CallState) -> Frame:
        if not self.stack:
            self.runs += 1
            self._calls.clear()
        return self._push(module, state)

    def _close(self, frame: Frame) -> None:
        # After an abandoned debugger the stack may be empty already.
        while self.stack and self.stack.pop() is not frame:
            pass
        if frame.parent is None:
            self.finished(frame)

    def _begins(self, module: Module) -> bool:
        """Whether an outermost call of this module belongs to the model, and its name in it."""
        if module is self.model:
            self._strip = (str(mode.module_path), "")
            return True
        for name, part in self.model.named_modules():
            if part is module:
                self._strip = (str(mode.module_path), name)
                return True
        return False

    def _push(self, module: Module, state: CallState) -> Frame:
        parent = self.stack[-1] if self.stack else None
        path = module.address if module.__class__ is Point else self._path(str(mode.module_path))
        if parent is not None and path == parent.address.module and module is not parent.subject:
            # Registered nowhere: it bears its caller's path, so its class tells them apart.
            path = f"{path}.{type(module).__name__}" if path else type(module).__name__
        call = self._calls[path]
        self._calls[path] += 1
        frame = Frame(Address(path, call), "module", module, parent, state)
        self.stack.append(frame)
        return frame

    def _path(self, path: str) -> str:
        """A path below the outermost call as one below the model."""
        outer, name = self._strip
        inner = path[len(outer) :].removeprefix(".") if path.startswith(outer) else path
        return f"{name}.{inner}" if name and inner else name or inner

    def enter_replacement(self, replacement: object) -> Any:
        """What was swapped in is about to run: all modules that it calls are seen."""
        was, self._replacement = self._replacement, replacement
        self._replacements += 1
        return was

    def leave_replacement(self, was: object) -> None:
        """What was swapped in has run."""
        self._replacement = was
        self._replacements -= 1

    # --- operators ----------------------------------------------------------------------------

    @property
    def sees_operators(self) -> bool:
        return self._ops and bool(self.stack) and not self.inactive

    def _op_frame(self, op: Op, state: CallState) -> Frame:
        parent = self.stack[-1]
        name = op.name.lstrip("_")
        address = parent.address._replace(op=name, index=parent.ops[name])
        parent.ops[name] += 1
        frame = Frame(address, "op", op, parent, state)
        self.stack.append(frame)
        return frame


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Inside, no probe sees anything.

    >>> from votive.glass.probe import unobserved
    >>> net = votive.nn.Sequential(votive.nn.Identity())
    >>> with votive.glass.capture(net, "0") as seen, unobserved():
    ...     _ = net(votive.ones(1))
    >>> len(seen)
    0
    """
    mode.unobserved += 1
    try:
        yield
    finally:
        mode.unobserved -= 1


def cache_of(args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
    """The key-value cache among the arguments of a call; None without one."""
    for value in (*args, *kwargs.values()):
        if hasattr(value, "get_seq_length"):
            return value
    return None


def past_of(args: Iterable[Any], kwargs: dict[str, Any]) -> int:
    """How many positions a cache among the arguments holds."""
    cache = cache_of(args, kwargs)
    return 0 if cache is None else int(cache.get_seq_length())


def _layer_of(frame: Frame) -> int | None:
    """The first layer of a cache that a module fills; None where it does not say."""
    found = [m.__dict__.get("layer_idx") for m in frame.subject.modules()]
    return min((i for i in found if type(i) is int), default=None)


def _given_ids(frame: Frame) -> bool:
    """Whether a call is given tokens, as whole models are."""
    first = values.first((frame.args, frame.kwargs))
    return first is not None and first.dim() == 2 and not first.is_floating_point()


def _with_holders(model: Module, wanted: Iterable[Any]) -> dict[int, Any]:
    """Modules, and all those of a model that hold one of them, by id."""
    found = {id(m): m for m in wanted}
    known: dict[int, bool] = {}

    def holds(module: Module) -> bool:
        if id(module) not in known:
            known[id(module)] = id(module) in found
            inside = [holds(m) for m in module._modules.values() if m is not None]
            known[id(module)] = known[id(module)] or any(inside)
            if known[id(module)]:
                found[id(module)] = module
        return known[id(module)]

    holds(model)
    found[id(model)] = model
    return found
