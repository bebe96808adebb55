"""Where time and memory go, by address. Knows no model.

Times and bytes come from separate runs, as asking the allocator takes time. Each run begins from
the same state: generators, buffers, gradients and caches are put back after it.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import votive

from ..core.storage import cpu_allocator
from ..nn import Module
from . import values
from .address import Address
from .backward import BackwardObserver
from .display import Displayable
from .probe import Frame, Probe
from .run import tag
from .snapshot import Snapshot
from .text_table import size, table


@dataclass
class Span:
    """One call that was timed: when it began, counted from the beginning of the run, and its time.

    `wall` is the time by the clock; `seconds` is without what watching the calls inside took.

    >>> inner = votive.glass.Span("0", "Linear", "module", seconds=0.25)
    >>> votive.glass.Span("", "Sequential", "module", seconds=1.0, children=[inner]).own
    0.75
    """

    address: str
    name: str
    kind: str  # "module", "op" or "grad"
    start: float = 0.0
    seconds: float = 0.0
    allocated: int = 0
    peak: int = 0
    wall: float = 0.0
    children: list[Span] = field(default_factory=list)

    @property
    def own(self) -> float:
        """Seconds that no inner call took."""
        return max(0.0, self.seconds - sum(c.seconds for c in self.children))

    def walk(self) -> Iterator[Span]:
        """This call and all inside it."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Cost:
    """What an address costs in one run, the fastest of those that were timed.

    `allocated` are the bytes of new results, `peak` how far memory rose above where it stood when
    the call began. Modules include what they call, `own` does not.

    >>> votive.glass.Cost("0/linear#0", "linear", "op", calls=1).calls
    1
    """

    address: str
    name: str
    kind: str
    calls: int = 0
    seconds: float = 0.0
    own: float = 0.0
    allocated: int = 0
    peak: int = 0


class _Clock(Probe):
    """Times calls, and leaves out what it takes itself."""

    def __init__(self, model: Module, *, ops: bool, memory: bool) -> None:
        super().__init__(model, ops=ops)
        self.memory = memory
        self.root = Span("", "run", "module")
        self._open: list[tuple[Span, float, int]] = []  # span, lost seconds, bytes at its start
        self._lost = 0.0
        self._begin = time.perf_counter()
        self._backward: dict[tuple[str, ...], Span] = {}
        self.observer = BackwardObserver(self._grad, lambda: not self.inactive)

    def entered(self, frame: Frame) -> None:
        self._enter(frame)

    def left(self, frame: Frame) -> None:
        now = time.perf_counter()
        tag(frame)
        exact = frame.seconds if frame.kind == "op" and frame.seconds == frame.seconds else None
        self._leave(now, exact, frame)

    def failed(self, frame: Frame, error: Exception) -> None:
        # An operator that refused its arguments was never entered.
        if self._open and self._open[-1][0].address == str(frame.address):
            self._leave(time.perf_counter(), None, None)

    def _enter(self, frame: Frame, into: list[Span] | None = None) -> None:
        now = time.perf_counter()
        span = Span(str(frame.address), frame.name.lstrip("_"), frame.kind, now - self._begin)
        if into is None:
            into = (self._open[-1][0] if self._open else self.root).children
        into.append(span)
        held = 0
        if self.memory:
            held = self._note_peak()
        self._open.append((span, self._lost, held))
        self._lost += time.perf_counter() - now

    def _leave(self, now: float, exact: float | None, frame: Frame | None) -> None:
        span, lost, held = self._open.pop()
        span.wall = now - self._begin - span.start
        whole = span.wall - (self._lost - lost)
        span.seconds = max(whole if exact is None else exact, sum(c.seconds for c in span.children))
        if self.memory:
            self._note_peak(span)
            span.peak = max(span.peak - held, 0)
            if frame is not None and frame.kind != "module":
                span.allocated = _new_bytes(frame)
            span.allocated += sum(c.allocated for c in span.children)
        self._lost += time.perf_counter() - now

    def _note_peak(self, *also: Span) -> int:
        """Tell all that run how high memory rose, and start counting anew."""
        found = cpu_allocator.stats()
        for span in (*(s for s, _, _ in self._open), *also):
            span.peak = max(span.peak, found["peak_bytes"])
        cpu_allocator.reset_peak()
        return found["allocated_bytes"]

    def _grad(self, frame: Frame, phase: str) -> None:
        if phase == "enter":
            self._enter(frame, self._place(frame.address))
        elif self._open:
            self._leave(time.perf_counter(), None, frame)

    def _place(self, address: Address) -> list[Span]:
        """Where a step of the backward pass belongs: below the modules of its forward call."""
        parts = ("backward", *(p for p in address.module.split(".") if p))
        at = self.root
        for i in range(1, len(parts) + 1):
            key = parts[:i]
            if key not in self._backward:
                made = Span(".".join(key[1:]), key[-1], "grad", time.perf_counter() - self._begin)
                at.children.append(made)
                self._backward[key] = made
            at = self._backward[key]
        return at.children

    def close(self) -> Span:
        """The whole run, with the sums of what has no time of its own."""
        for key in sorted(self._backward, key=len, reverse=True):
            span = self._backward[key]
            span.seconds = sum(c.seconds for c in span.children)
            span.allocated = sum(c.allocated for c in span.children)
            span.peak = max((c.peak for c in span.children), default=0)
        self.root.seconds = sum(c.seconds for c in self.root.children)
        self.root.allocated = sum(c.allocated for c in self.root.children)
        self.root.peak = max((c.peak for c in self.root.children), default=0)
        return self.root


def _new_bytes(frame: Frame) -> int:
    """Bytes of results that are not views of what came in."""
    given = {id(t._storage.root) for _, t in values.tensors((frame.args, frame.kwargs))}
    made = {id(t): t for _, t in values.tensors(frame.output)}
    fresh = [t for t in made.values() if id(t._storage.root) not in given]
    return sum(t.numel() * t.element_size() for t in fresh)


class Profile(Displayable):
    """Costs by address, and the calls of the fastest run; made by `profile`.

    What disturbs a run makes it slower, never faster; so the fastest tells most about the model.

    >>> votive.glass.profile(votive.nn.Tanh(), votive.ones(2)).rows("calls")[0].address
    ''
    """

    def __init__(self, runs: list[Span], memory: Span | None) -> None:
        self.runs = runs
        self.run = min(runs, key=lambda r: r.seconds)
        self.costs = _costs(self.run, memory)
        if memory is not None:
            _copy_bytes(memory, self.run)

    def __getitem__(self, address: object) -> Cost:
        """What the forward call at an address costs."""
        return self._found(str(address), ("module", "op"))

    def grad(self, address: object) -> Cost:
        """What the backward pass of an address costs."""
        return self._found(str(address), ("grad",))

    def _found(self, address: str, kinds: tuple[str, ...]) -> Cost:
        for cost in self.costs:
            if cost.address == address and cost.kind in kinds:
                return cost
        raise KeyError(f"profile: nothing ran at {address!r}.")

    @property
    def seconds(self) -> float:
        """Seconds of the fastest run."""
        return self.run.seconds

    def rows(self, sort: str = "own") -> list[Cost]:
        """Costs, the largest first."""
        if sort not in ("own", "seconds", "calls", "allocated", "peak"):
            raise ValueError(f"profile: sort must be own, seconds, calls, allocated or peak, got {sort!r}.")
        return sorted(self.costs, key=lambda c: -getattr(c, sort))

    def table(self, limit: int | None = 30, sort: str = "own") -> str:
        """The costs as text."""
        whole = self.seconds or 1.0
        rows = [
            (
                c.address or "(model)",
                c.name,
                c.kind,
                c.calls,
                f"{c.own * 1e3:.3f}",
                f"{c.seconds * 1e3:.3f}",
                f"{100 * c.own / whole:.1f}",
                size(c.allocated),
                size(c.peak),
            )
            for c in self.rows(sort)[:limit]
        ]
        columns = ["address", "name", "kind", ">calls", ">own ms", ">total ms", ">own %", ">allocated", ">peak"]
        return table("", columns, rows)

    def __str__(self) -> str:
        return self.table()

    def flame(self, path: str | os.PathLike[str] | None = None, *, width: int = 1200) -> str:
        """The fastest run as a flame graph, an SVG of its own; also written to `path`."""
        from .flame import flame

        return _written(flame(self.run, width=width), path)

    def trace(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The fastest run as a Chrome trace, for chrome://tracing and Perfetto."""
        import json

        from .trace_export import chrome_trace

        found = chrome_trace(self.run)
        _written(json.dumps(found), path)
        return found

    def __repr__(self) -> str:
        return f"<profile of {len(self.costs)} addresses, {self.seconds * 1e3:.3f} ms a run>"


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        with open(os.fspath(path), "w", encoding="utf-8") as f:
            f.write(text)
    return text


def _costs(run: Span, memory: Span | None) -> list[Cost]:
    found: dict[tuple[str, str], Cost] = {}
    for span in run.walk():
        if span is not run:
            key = (span.kind, span.address)
            cost = found.setdefault(key, Cost(span.address, span.name, span.kind))
            cost.calls += 1
            cost.seconds += span.seconds
            cost.own += span.own
    for span in [] if memory is None else memory.walk():
        other = found.get((span.kind, span.address))
        if other is not None and span is not memory:
            other.allocated += span.allocated
            other.peak = max(other.peak, span.peak)
    return list(found.values())


def _copy_bytes(source: Span, target: Span) -> None:
    """Bytes of the run that counted them, for the same calls of another."""
    target.allocated, target.peak = source.allocated, source.peak
    for a, b in zip(source.children, target.children, strict=False):
        if (a.address, a.kind) == (b.address, b.kind):
            _copy_bytes(a, b)


def profile(
    model: Module,
    *inputs: object,
    ops: bool = True,
    repeat: int = 3,
    warmup: int = 1,
    memory: bool = True,
    loss: Callable[[Any], Any] | None = None,
    **kwargs: object,
) -> Profile:
    """Run `model(*inputs, **kwargs)` and on_event what each address costs in time and memory.

    With `loss`, a function of the output, the backward pass is measured too. Without a graph being
    asked for, the model runs under `no_grad`. Watching operators slows what lies between them, so
    `ops=False` gives the truest times of modules. The allocator's record of its peak is reset.

    >>> net = votive.nn.Sequential(votive.nn.Linear(64, 64), votive.nn.ReLU())
    >>> found = votive.glass.profile(net, votive.ones(8, 64), repeat=1)
    >>> found["0/linear#0"].calls, found["0"].allocated, found["1"].seconds > 0
    (1, 2048, True)
    """
    if repeat < 1 or warmup < 0:
        raise ValueError(f"profile: repeat must be positive and warmup not negative, got {repeat} and {warmup}.")
    snapshot = Snapshot(model, inputs, kwargs)

    def once(clock: _Clock | None) -> Span | None:
        try:
            with votive.set_grad_enabled(loss is not None):
                if clock is None:
                    out = model(*inputs, **kwargs)
                    if loss is not None:
                        loss(out).backward()
                    return None
                with clock, clock.observer:
                    out = model(*inputs, **kwargs)
                    if loss is not None:
                        loss(out).backward()
                return clock.close()
        finally:
            snapshot.restore()

    for _ in range(warmup):
        once(None)
    runs = [once(_Clock(model, ops=ops, memory=False)) for _ in range(repeat)]
    if memory:
        gc.collect()  # garbage that dies in between would look as if the model freed it
    counted = once(_Clock(model, ops=ops, memory=True)) if memory else None
    return Profile([r for r in runs if r is not None], counted)
