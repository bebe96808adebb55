"""`explain`: what became of a compiled program, for readers: graphs, rewrites, kernels with their text, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..backends.base import BACKENDS
from .api import Compiled, compile
from .backward import saved_values
from .entry import Entry
from .graph import Node, Value
from .symbols import plain

_FEW = 12  # lines of a long text that `repr` shows


@dataclass(frozen=True)
class Kernel:
    """One fused kernel: what it computes, for which modules, and its text."""

    name: str
    device: str
    calls: tuple[str, ...]  # the operators it stands for
    addresses: tuple[str, ...]  # of the modules that called them
    backward: bool
    bytes: int  # that it reads and writes
    source: str | None  # C++ or Triton; None where the device computes results one by one

    def __str__(self) -> str:
        where = f" in {_listed(self.addresses)}" if self.addresses else ""
        when = "backward" if self.backward else "forward"
        how = "" if self.source else ", no kernel of its own: results are computed one by one"
        return f"{self.name} ({when}): {', '.join(self.calls)}{where}, {_bytes(self.bytes)}{how}"


@dataclass(frozen=True)
class Version:
    """A program compiled for one signature."""

    inputs: tuple[str, ...]  # arguments, and what the program reads outside
    guards: int
    forward: str  # the graph, one line per call
    backward: str
    code: tuple[str, str]  # the Python functions that run, forward and backward
    rules: dict[str, int]
    kernels: tuple[Kernel, ...]
    captures: tuple[str, ...]  # addresses whose values are looked at by hooks and captures
    runs: int
    kept_bytes: int  # between forward and backward, beside inputs and weights
    peak_bytes: int  # the most that values of the graph take at one time, an estimate
    cuda_graph: str
    notes: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()  # what a run leaves behind beside its result: gradients, states, steps of schedules
    symbols: tuple[str, ...] = ()  # sizes that may change, and where they are found
    conditions: tuple[str, ...] = ()  # what the program asked of them
    specialised: tuple[str, ...] = ()  # sizes that are fixed, and why

    def text(self, whole: bool = True) -> str:
        """Everything about it; shortened unless `whole`."""
        lines = [f"  ran {self.runs} times, {self.guards} guards, CUDA graph: {self.cuda_graph}"]
        lines.append(f"  memory: about {_bytes(self.peak_bytes)} at most, {_bytes(self.kept_bytes)} kept for backward")
        if self.captures:
            lines.append(f"  looked at: {_listed(self.captures, None if whole else 6)}")
        for title, rows in (
            ("sizes that may change", self.symbols),
            ("while", self.conditions),
            ("specialised", self.specialised),
            ("inputs", self.inputs),
            ("rewrites", [f"{name}: {n}" for name, n in self.rules.items()]),
            ("kernels", [str(k) for k in self.kernels]),
            ("forward", self.forward.splitlines()),
            ("backward", self.backward.splitlines()),
            ("afterwards", self.effects),
        ):
            if rows:
                lines += [f"  {title}:", *(f"    {r}" for r in _shortened(rows, whole))]
        if whole:
            for k in self.kernels:
                if k.source:
                    lines += [f"  source of {k.name}:", *(f"    {r}" for r in k.source.splitlines())]
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """What `explain` tells; prints shortened, `text()` is the whole."""

    name: str
    versions: tuple[Version, ...]
    recompilations: tuple[str, ...]
    eager: str  # why it runs as it is; empty where it does not
    breaks: tuple[Any, ...] = ()  # where traces ended, and why
    refused: tuple[str, ...] = ()  # why it runs as it is while somebody looks inside
    specialised: tuple[str, ...] = ()  # why single sizes were compiled where others came, too
    pieces: tuple[Explanation, ...] = ()  # of what is not one graph: its compiled parts

    def _parts(self) -> tuple[Version | Explanation, ...]:
        return *self.versions, *self.pieces

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Those of all versions, and of all pieces."""
        return tuple(k for one in self._parts() for k in one.kernels)

    @property
    def rules(self) -> dict[str, int]:
        """How often each rewrite was made, in all versions and pieces."""
        found: dict[str, int] = {}
        for one in self._parts():
            for name, n in one.rules.items():
                found[name] = found.get(name, 0) + n
        return found

    def text(self, whole: bool = True) -> str:
        """The explanation with whole graphs and the text of every kernel."""
        many = "1 version" if len(self.versions) == 1 else f"{len(self.versions)} versions"
        lines = [f"{self.name}: {many}"]
        if self.eager:
            how = f"runs as {len(self.pieces)} pieces" if self.pieces else "runs as it is"
            lines.append(f"{how}: {self.eager}")
        lines += [f"runs as it is while somebody looks inside: {why}" for why in self.refused]
        lines += [f"break at {b.file}:{b.line}: {b.why}" for b in self.breaks if b.file]
        if self.recompilations:
            lines += ["compiled again because:", *(f"  {r}" for r in self.recompilations)]
        lines += [f"not compiled for any size: {why}" for why in self.specialised]
        for i, v in enumerate(self.versions):
            lines += [f"version {i}", v.text(whole)]
        for i, piece in enumerate(self.pieces):
            lines += [f"piece {i}", *(f"  {line}" for line in piece.text(whole).splitlines())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.text(whole=False)

    def _repr_html_(self) -> str:
        parts = [f"<b>{escape(self.name)}</b>"]
        if self.eager:
            parts.append(f"<p>runs as it is: {escape(self.eager)}</p>")
        if self.recompilations:
            parts.append(_fold("compiled again", "\n".join(self.recompilations)))
        for i, v in enumerate(self.versions):
            parts.append(f"<p>version {i}: ran {v.runs} times, {_bytes(v.peak_bytes)} at most</p>")
            parts.append(_fold("forward graph", v.forward))
            if v.backward:
                parts.append(_fold("backward graph", v.backward))
            for k in v.kernels:
                parts.append(_fold(str(k), k.source or ""))
        for piece in self.pieces:
            parts.append(f"<div style='margin-left: 1em'>{piece._repr_html_()}</div>")
        return "\n".join(parts)


def explain(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """What became of a compiled function or module; with arguments, it is called with them first.

    A function that is not compiled yet is compiled for this.

    >>> def gate(x, y):
    ...     return votive.sigmoid(x) * y + 1
    >>> found = votive.compiler.explain(gate, votive.zeros(2), votive.ones(2))
    >>> found.kernels[0].calls
    ('sigmoid', 'mul', 'add')
    """
    compiled = _compiled_of(fn)
    if compiled is None:
        if not (args or kwargs):
            raise TypeError("explain: the function is not compiled yet; give it the arguments to compile it for.")
        fn = compile(fn)
        compiled = _compiled_of(fn)
    if compiled is None:
        raise TypeError(f"explain: expected something that compile gives, got {type(fn).__name__}.")
    if args or kwargs:
        fn(*args, **kwargs)
    return _explanation(compiled, set())


def _explanation(compiled: Compiled, seen: set[int]) -> Explanation:
    seen.add(id(compiled))
    names = {id(m): n for n, m in getattr(compiled.fn, "named_modules", tuple)()}
    versions = [_version(e, names) for found in compiled.entries.values() for e in found]
    pieces = [_explanation(c, seen) for c in compiled.parts if id(c) not in seen]
    return Explanation(
        compiled._name(),
        tuple(versions),
        tuple(compiled.recompilations),
        compiled.eager,
        tuple(compiled.breaks),
        _refused(compiled),
        tuple(dict.fromkeys(compiled.specialised)),
        tuple(p for p in pieces if p.versions or p.pieces),
    )


def _refused(compiled: Compiled) -> tuple[str, ...]:
    return tuple(dict.fromkeys(compiled.refused.values()))


def _compiled_of(fn: Callable[..., Any]) -> Compiled | None:
    if isinstance(fn, Compiled):
        return fn
    for holder in (fn, getattr(fn, "__func__", None), getattr(fn, "__dict__", {}).get("forward")):
        found = holder if isinstance(holder, Compiled) else getattr(holder, "__dict__", {}).get("_compiled")
        if isinstance(found, Compiled):
            return found
    return None


def _version(entry: Entry, names: dict[int, str]) -> Version:
    graph = entry.graph
    inside = entry.joint is None  # gradients that are computed, if any, are part of the one graph
    front = [n for n in graph.nodes if inside or not n.backward]
    back = [n for n in graph.nodes if n.backward and not inside]
    own = [v for v in entry.saved if v.node is not None]
    kept = [v for v in saved_values(graph.nodes, None) if v.node is not None] if inside else own
    lines = graph.text().splitlines()
    head = len(graph.inputs) + len(graph.constants)
    shown = lines[head : head + len(graph.nodes)]
    forward = [line for node, line in zip(graph.nodes, shown, strict=True) if inside or not node.backward]
    backward = [line for node, line in zip(graph.nodes, shown, strict=True) if node.backward and not inside]
    forward.append("return " + ", ".join(map(repr, graph.outputs)))
    if back and entry.joint is not None:
        backward.append("return " + ", ".join(repr(g) for g in entry.joint.grads if g is not None))
    return Version(
        inputs=tuple(_input(v, entry, names) for v in graph.inputs),
        guards=len(entry.guards.checks) + len(graph.inputs),
        forward="\n".join(forward),
        backward="\n".join(backward),
        code=(entry.forward.text, "" if entry.backward is None else entry.backward.text),
        rules=_rules(entry.report),
        kernels=tuple(_kernel(n) for n in graph.nodes if n.op.name in ("_region", "_row_region")),
        captures=tuple(getattr(entry, "captures", ())),
        runs=entry.runs,
        kept_bytes=sum(plain(v.spec.nbytes) for v in {v.root for v in kept}),
        peak_bytes=max(_peak(front, [*graph.outputs, *own], ()), _peak(back, [], own)),
        cuda_graph=_replayed(entry.replay, entry.sizes),
        notes=tuple(entry.report),
        effects=tuple(entry.effects),
        **_described(entry.sizes),
    )


def _described(sizes: Any) -> dict[str, Any]:
    """What is said of sizes that may change."""
    if sizes is None:
        return {}
    known = sizes.symbols
    fixed = {f"{line.split(' is ')[0]} == {line.split(' is ')[1].split(':')[0]}" for line in known.fixed}
    return {
        "symbols": tuple([f"{s.name} = {s.label}, was {s.hint}" for s in known.symbols]),
        "conditions": tuple([c + (f"  # {at}" if at else "") for c, at in known.conditions.items() if c not in fixed]),
        "specialised": tuple(known.fixed),
    }


def _input(v: Value, entry: Entry, names: dict[int, str]) -> str:
    """What an input is called: an argument by its name, a weight by its address."""
    place = entry.guards.wanted[v][0]
    where = names.get(id(place.owner))
    label = v.label if not where else f"{where}.{place.key}"
    return f"{v!r} = {label}: {str(v.spec.dtype).removeprefix('votive.')} {v.spec.shape} on {v.spec.device}"


def _rules(report: Sequence[str]) -> dict[str, int]:
    """The counts among the notes of passes."""
    found: dict[str, int] = {}
    for line in report:
        hit = re.fullmatch(r"(.*): (\d+) (?:times|of \d+ calls)", line)
        if hit:
            found[hit[1]] = found.get(hit[1], 0) + int(hit[2])
    return found


def _kernel(node: Node) -> Kernel:
    region = node.args[-1]
    specs = tuple(v.spec for v in node.args[-2])
    device = region.outs[0].device.type
    text = getattr(BACKENDS[device], "region_source", None)
    return Kernel(
        region.name,
        device,
        region.covers,
        node.addresses,
        node.backward,
        sum(plain(s.nbytes) for s in (*specs, *region.outs)),
        None if text is None else text(region, specs),
    )


def _peak(nodes: Sequence[Node], kept: Iterable[Value], before: Iterable[Value]) -> int:
    """The most bytes that values live at one time, when each is let go of after its last use."""
    last: dict[Value, int] = {}
    for i, node in enumerate(nodes):
        for v in (*node.reads(), *node.writes, *node.outs):
            last[v.root] = i
    held = {v.root for v in kept}
    live = {v.root for v in before}
    now = most = sum(plain(v.spec.nbytes) for v in live)
    for i, node in enumerate(nodes):
        for v in node.outs:
            if v.root not in live and v.root.node is not None:
                live.add(v.root)
                now += plain(v.root.spec.nbytes)
        most = max(most, now)
        for v in {v.root for v in (*node.reads(), *node.outs)} & live:
            if last[v] == i and v not in held:
                live.remove(v)
                now -= plain(v.spec.nbytes)
    return most


def _replayed(replay: Any, sizes: Any) -> str:
    if sizes is not None:
        return "none, sizes may change"
    if replay is None:
        return "none, it does not run on one GPU"
    if replay.off:
        return "off"
    if replay.front is None:
        return "not recorded yet"
    return f"recorded {replay.recorded} times"


def _bytes(n: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if n < 1024:
            return f"{n} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1024  # type: ignore[assignment]
    return f"{n:.2f} GiB"


def _listed(names: Sequence[str], most: int | None = 6) -> str:
    if most is None or len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])}, … {len(names) - most} more"


def _shortened(rows: Sequence[str], whole: bool) -> list[str]:
    if whole or len(rows) <= _FEW:
        return list(rows)
    half = _FEW // 2
    return [*rows[:half], f"… {len(rows) - 2 * half} more, see text()", *rows[-half:]]


def _fold(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


__all__ = ["Explanation", "Kernel", "Version", "explain"]
