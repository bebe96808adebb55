"""Keeping values of a run by address, in full or in part. Knows no model."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from . import values
from .address import Address, Pattern, PatternLike, Patterns
from .display import Displayable
from .probe import Frame, Probe
from .statistics import Statistics, statistics
from .targets import modules_for, no_match, patterns

POLICIES = ("keep", "copy", "cpu", "half", "stats")


@dataclass
class Captured:
    """One value that was captured."""

    address: Address
    run: int
    value: Any
    bytes: int
    versions: tuple[tuple[Any, int], ...] = ()

    def read(self) -> Any:
        for tensor, version in self.versions:
            if tensor._writes != version:
                raise RuntimeError(
                    f"capture: the value at {self.address} was changed in place after it was "
                    "captured; capture it with policy='copy'."
                )
        return self.value


class Capture(Probe, Displayable):
    """Values at the addresses that match; read them by address or pattern when the run is over.

    `policy` says what is kept: "keep" the tensors themselves, with their graph; "copy", "cpu" and
    "half" detached copies, the last two on the CPU; "stats" only statistics. "half" keeps float32
    and float64 as bfloat16, which has their range: three digits of each number. Other types stay,
    and numbers beyond that range (3.39e38) are refused; those below 1e-40 become 0.

    >>> model = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU())
    >>> with votive.glass.capture(model, "*") as seen:
    ...     y = model(votive.ones(1, 2))
    >>> sorted(seen), seen["1"] is y
    (['0', '1'], True)
    """

    for_runs = True

    def __init__(self, model: Module, at: Patterns = "**", *, policy: str = "keep", limit: int | None = None) -> None:
        if policy not in POLICIES:
            raise ValueError(f"capture: policy must be one of {POLICIES}, got {policy!r}.")
        self.patterns = patterns(at)
        only = modules_for(model, self.patterns)
        super().__init__(model, ops=any(p.wants_ops for p in self.patterns), only=only, sites=self.patterns)
        self.policy, self.limit = policy, limit
        self.keeps_graph = policy == "keep"
        self.kept: dict[str, list[Captured]] = {}
        self.bytes = 0
        self._fired = [0] * len(self.patterns)

    def entered(self, frame: Frame) -> None:
        for i, pattern in enumerate(self.patterns):
            if pattern.side == "in" and pattern.matches(frame.address, frame):
                self._take(i, frame, pattern, (frame.args, frame.kwargs), ":in")

    def left(self, frame: Frame) -> None:
        for i, pattern in enumerate(self.patterns):
            if pattern.side == "out" and pattern.matches(frame.address, frame):
                self._take(i, frame, pattern, frame.output, "")

    def compiled_as(self) -> Any:
        if type(self) is not Capture or self.inactive:
            return None
        if any(p.predicate or p.wants_ops or p.wants_sites for p in self.patterns):
            return None
        return self.model, self.policy == "keep", tuple((p.text, p.side, p.path) for p in self.patterns)

    def reads(self, frame: Frame, side: str) -> bool:
        return any(p.side == side and p.matches(frame.address) for p in self.patterns)

    def _take(self, i: int, frame: Frame, pattern: Pattern, value: object, suffix: str) -> None:
        self._fired[i] += 1
        if pattern.side == "in":
            value = input_at(frame, pattern.path)
        elif pattern.path:
            value = values.get(value, pattern.path)
        if pattern.path:
            suffix = f":{pattern.side}." + ".".join(pattern.path)
        if self.policy == "keep":  # nothing is computed
            kept = self._kept(frame.address, value)
        else:
            with self.muted(), votive.no_grad():
                kept = self._kept(frame.address, value)
        self.bytes += kept.bytes
        if self.limit is not None and self.bytes > self.limit:
            raise MemoryError(
                f"capture: {self.bytes:,} bytes are more than the limit of {self.limit:,}; "
                "match fewer addresses, or use policy='half' or 'stats'."
            )
        self.kept.setdefault(f"{frame.address}{suffix}", []).append(kept)

    def _kept(self, address: Address, value: object) -> Captured:
        if self.policy == "keep":
            versions = tuple((t, t._writes) for _, t in values.tensors(value))
            return Captured(address, self.runs, value, values.nbytes(value), versions)
        if self.policy == "stats":
            value = values.mapped(value, statistics)
            return Captured(address, self.runs, value, 0)
        value = values.mapped(value, self._copied)
        return Captured(address, self.runs, value, values.nbytes(value))

    def _copied(self, t: Tensor) -> Tensor:
        t = t.detach()
        if self.policy == "half" and t.is_floating_point() and t.element_size() > 2:
            return _halved(t)
        return t.clone() if self.policy == "copy" else t.to(device="cpu", copy=True)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        if exc[0] is None and self.runs:
            for pattern, fired in zip(self.patterns, self._fired, strict=True):
                if not fired:
                    raise no_match(pattern, [n for n, _ in self.model.named_modules()])

    def mark(self) -> Any:
        kept = {address: list(found) for address, found in self.kept.items()}
        return super().mark(), kept, self.bytes, list(self._fired)

    def rewind(self, mark: Any) -> None:
        runs, kept, self.bytes, fired = mark
        super().rewind(runs)
        self.kept = {address: list(found) for address, found in kept.items()}
        self._fired = list(fired)

    # --- reading ------------------------------------------------------------------------------

    def __iter__(self) -> Any:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __contains__(self, address: object) -> bool:
        return str(address) in self.kept

    def find(self, pattern: PatternLike) -> dict[str, Any]:
        """The latest value at each captured address that matches."""
        (wanted,) = patterns(pattern)
        return {a: k[-1].read() for a, k in self.kept.items() if wanted.matches(k[-1].address)}

    def all(self, address: PatternLike) -> list[Any]:
        """The values of all runs at one address, oldest first."""
        return [k.read() for k in self._at(address)]

    def __getitem__(self, address: PatternLike) -> Any:
        """The latest value at an address, or at the only one that a pattern matches."""
        return self._at(address)[-1].read()

    def _at(self, address: PatternLike) -> list[Captured]:
        text = str(address)
        if text in self.kept:
            return self.kept[text]
        (wanted,) = patterns(address)
        hits = [a for a, k in self.kept.items() if wanted.matches(k[-1].address)]
        if len(hits) == 1:
            return self.kept[hits[0]]
        if hits:
            raise KeyError(f"{text!r} matches {len(hits)} addresses; use find({text!r}).")
        raise KeyError(f"nothing was captured at {text!r}; captured: {', '.join(list(self)[:8])}.")

    def __repr__(self) -> str:
        return f"<capture of {len(self)} addresses, {self.runs} runs, {self.bytes:,} bytes>"


def _halved(t: Tensor) -> Tensor:
    """A copy in two bytes a number; float16 would lose what is beyond 65,504 or below 6e-8."""
    half = t.to(device="cpu", dtype=votive.bfloat16, copy=True)
    if bool((half.isinf() & t.isfinite().to("cpu")).any()):
        raise OverflowError(
            f"capture: a value of {float(t.abs().max()):.4g} does not fit into bfloat16; use "
            "policy='cpu' in place of 'half'."
        )
    return half


def first_input(frame: Frame) -> tuple[Any, ...] | None:
    """The way to the first tensor among a call's inputs; None without one.

    Inputs by name come in the order of the module's signature, not in that of the call.
    """
    way = values.first_path(frame.args)
    return values.first_path(_in_order(frame)) if way is None else way


def _in_order(frame: Frame) -> dict[str, Any]:
    """The inputs by name, as a module's `forward` has them."""
    given = frame.kwargs
    if not frame.is_module or len(given) < 2:
        return given
    try:
        names = list(inspect.signature(frame.subject.forward).parameters)
    except (TypeError, ValueError):  # it is no Python function
        return given
    known = [n for n in names if n in given]
    return {n: given[n] for n in (*known, *(n for n in given if n not in known))}


def input_at(frame: Frame, path: tuple[Any, ...]) -> Any:
    """An input of a call: the first one with a tensor, or what a number or a name chooses."""
    if not path:
        if frame.args and values.first(frame.args[0]) is not None:
            return frame.args[0]
        way = first_input(frame)
        if way is None:
            return frame.args[0] if frame.args and frame.is_module else None
        path = way
    path = by_number(frame, path)
    try:
        return values.get(frame.kwargs if path[0] in frame.kwargs else frame.args, path)
    except LookupError as e:
        names = list(frame.subject.schema.names) if frame.kind == "op" else [*frame.kwargs]
        if frame.is_module:
            names = [*map(str, range(len(frame.args))), *names]
        known = ", ".join(names) or "none"
        raise LookupError(f"{e} {frame.address} has these inputs: {known}.") from None


def put_input(frame: Frame, path: tuple[Any, ...] | None, new: object) -> None:
    """Give a call another input: the one at `path`, or the first tensor."""
    way = path or first_input(frame)
    if way is None:
        raise LookupError(f"{frame.address} has no tensor among its inputs.")
    way = by_number(frame, way)
    if way[0] in frame.kwargs:
        frame.kwargs = values.put(frame.kwargs, way, new)
    else:
        frame.args = values.put(frame.args, way, new)


def by_number(frame: Frame, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """A way that begins with the name of an operator's argument, with the argument's place."""
    if frame.kind == "op" and path[0] in frame.subject.schema.names:
        return (frame.subject.schema.names.index(path[0]), *path[1:])
    return path


def capture(model: Module, at: Patterns = "**", *, policy: str = "keep", limit: int | None = None) -> Capture:
    """See `Capture`; to be used in a `with` block.

    >>> net = votive.nn.Linear(2, 2)
    >>> with votive.glass.capture(net, "^", policy="stats") as seen:
    ...     _ = net(votive.ones(1, 2))
    >>> isinstance(seen[""], votive.glass.Statistics)
    True
    """
    return Capture(model, at, policy=policy, limit=limit)


__all__ = ["Capture", "Captured", "Statistics", "capture"]
