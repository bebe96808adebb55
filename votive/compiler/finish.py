"""From a trace to a compiled version: results, rules, the graph once more, gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..core.mode import mode
from ..dispatch import attach, detach
from .backward import Joint, trace_backward
from .entry import Entry
from .gradients import is_gradients, is_spent
from .graph import Graph, Value
from .guards import modes
from .look import with_events
from .rerun import repeatable, rerun
from .results import recipes_of
from .rules import apply_rules
from .segments import each_part
from .structure import Template
from .trace import Tracer, Untraceable, place_of
from .watch import Watch


def finish(watch: Watch, result: object, options: Any, make: Any = Entry) -> Entry | None:
    """The compiled version of a program that was traced to its end; None where its gradient was given up."""
    tracer, guards = watch.tracer, watch.guards
    if modes() != guards.modes:
        raise Untraceable("it changes a mode that stays changed")
    tracer.check_draws()
    tracer.check_windows()
    whole = Template(result, watch.is_outer)
    found = whole.tensors
    results = len(found)  # the rest is what others look at
    build = watch.effects.wrap(whole.released(), found)
    build = with_events(build, watch.events, found, watch.is_outer)
    graph = tracer.graph
    recipes, outs = recipes_of(tracer, found)
    graph.outputs = [tracer.value_of(t) for t in outs]
    cleared = [graph.inputs.index(tracer.value_of(t)) for t in watch.effects.overwritten()]
    ins = [guards.tensors[v][1] for v in graph.inputs]
    for t, place in watch.tensors.values():
        if id(t) not in tracer.named and place_of(t):
            guards.form(place, t)  # Python may have asked for its shape
    written = graph.written()
    if any(t._writes != n for t, n in watch.seen):
        raise Untraceable("it writes into a value that a hook or capture reads")
    results = 1 + max([r.index for r in recipes[:results] if not r.given], default=-1)
    spent = tuple([i for i in range(results) if is_spent(outs[i], tracer.start)])
    wants = mode.grad and any(outs[i]._rg for i in range(results) if i not in spent)
    if wants and spent:
        raise Untraceable("gradients of some of its results are computed inside, those of others are not")
    for v, t in zip(graph.inputs, ins, strict=True):
        if v.root in written and t._rg and (wants or _differentiably(graph, v.root)):
            raise Untraceable("it writes into a tensor that requires a gradient")
    looked = tuple(i for i in range(results, len(outs)) if mode.grad and outs[i]._rg and watch.keeps_graph)
    if looked and (not wants or any(v in written for v in graph.inputs)):
        raise Untraceable(
            "a hook or capture reads values with their autograd graph, which is not the graph of its result"
        )
    report: list[str] = []
    again = repeatable(graph, ins)
    inner = any(is_gradients(n) for n in graph.nodes)
    if inner and again is None:
        raise Untraceable("it computes gradients, and writes into tensors that share memory")
    if again is not None:
        graph.kept = {graph.outputs[i] for i in looked}
        before = set(graph.nodes)
        counts: dict[str, int] = {}
        each_part(graph, lambda later: _rewrite(graph, wants or inner, counts))
        if any(graph.kept.intersection(n.outs) and len(n.outs) > 1 for n in graph.nodes if n not in before):
            raise Untraceable("a hook or capture reads a value inside what a rule has fused")
        report += [f"{name}: {n} times" for name, n in counts.items()]
        if counts or inner:
            detach(tracer)
            tracer.alive.clear()
            tracer.known.clear()
            tracer.named.clear()
            cut = [not t._rg for t in outs]  # results that were detached are the values themselves here
            try:
                tracer, outs = rerun(graph, again)
                outs = [t.detach() if c and t._rg else t for t, c in zip(outs, cut, strict=True)]
            finally:
                attach(watch.tracer)
            graph = tracer.graph
            graph.outputs = [tracer.value_of(t) for t in outs]
    joint = None
    if wants:
        for n in graph.nodes:
            n.backward = False  # gradients that were computed inside: now others are computed through them
        with _observing(tracer, watch.tracer):
            joint = _differentiated(tracer, outs[:results], ins, [outs[i] for i in looked])
        if tracer.broken:
            watch.tracer.give_up(tracer.broken)
            return None
    entry: Entry = make(
        graph, guards, joint, recipes, build, options, report, looked if joint is not None else (), spent
    )
    entry.effects = watch.effects.described()
    entry.cleared = cleared
    entry.captures = [a for e in watch.events for a in e.addresses()]
    return entry


def _rewrite(graph: Graph, gradients: bool, counts: dict[str, int]) -> None:
    """Apply rules to a part of a graph."""
    outputs = graph.outputs
    graph.outputs = [*outputs, *graph.later]
    try:
        for name, n in apply_rules(graph, gradients).items():
            counts[name] = counts.get(name, 0) + n
    finally:
        graph.outputs = outputs


def _differentiably(graph: Graph, root: Value) -> bool:
    """Whether a write to some memory is part of what autograd knows."""
    writers = [n for n in graph.nodes if any(v.root is root for v in n.writes)]
    return any(n.grad and n.op.differentiable for n in writers)


def _differentiated(tracer: Tracer, outs: list[Any], ins: list[Any], looked: list[Any]) -> Joint | None:
    try:
        return trace_backward(tracer, outs, ins, looked)
    except (Untraceable, MemoryError):
        raise
    except Exception as e:  # backward of the program itself will say so to whoever calls it
        raise Untraceable(f"its gradient cannot be computed: {e}") from e


@contextlib.contextmanager
def _observing(tracer: Tracer, usual: Tracer) -> Iterator[None]:
    """Let a tracer observe in place of the one that does."""
    if tracer is usual:
        yield
        return
    detach(usual)
    try:
        with tracer:
            yield
    finally:
        attach(usual)
