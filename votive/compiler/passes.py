"""What is done to a graph before it is emitted: rewrites that do not change what a program computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .backward import Joint
from .fusion import fuse
from .graph import Graph, Node, Value
from .recompute import recompute


def improve(graph: Graph, joint: Joint | None, report: list[str], options: Any) -> None:
    """Run every pass in order; each says in `report` what it did."""

    def wanted() -> set[Value]:
        return {*graph.outputs, *(g for g in (joint.grads if joint else ()) if g is not None)}

    passes: list[tuple[str, Callable[[], int]]] = [
        ("dead code", lambda: remove_dead(graph, wanted())),
        ("writes in place that nobody sees", lambda: without_writes(graph)),
        ("common subexpressions", lambda: share(graph, wanted())),
        ("computed again in backward", lambda: recompute(graph, joint, report)),
        ("elementwise calls in regions", lambda: fuse(graph, wanted(), report)),
        ("dead code after that", lambda: remove_dead(graph, wanted())),
    ]
    for name, run in passes:
        before = len(graph.nodes)
        changed = run()
        graph.outputs = [graph.resolve(v) for v in graph.outputs]
        if joint is not None:
            joint.grads = [None if g is None else graph.resolve(g) for g in joint.grads]
        if changed:
            report.append(f"{name}: {changed} of {before} calls")
    for node in graph.nodes:
        node.plan = None  # plans hold on to kernels that may never run again


def remove_dead(graph: Graph, wanted: set[Value]) -> int:
    """Drop calls whose results nobody uses and that write nowhere that is seen later; says how many."""
    before = len(graph.nodes)
    visible = {v.root for v in wanted}
    live: set[Value] = set(wanted)
    roots: set[Value] = set()  # memory that somebody looks at later
    kept: list[Node] = []
    for v in wanted:
        roots.add(v.root)
    for node in reversed(graph.nodes):
        seen = any(o in live for o in node.outs)
        for w in node.writes:
            root = w.root
            if root.node is None or root in roots or root in visible:
                seen = True
        if node.draw is not None:
            seen = True  # counters are taken whether or not anybody looks
        if not seen:
            continue
        kept.append(node)
        for v in node.reads():
            live.add(v)
            roots.add(v.root)
        for w in node.writes:
            live.add(w)
            roots.add(w.root)
    graph.nodes = kept[::-1]
    return before - len(kept)


def without_writes(graph: Graph) -> int:
    """A call that writes over a value which the graph itself has made, and which has no views, gives a new value."""
    viewed = {v.base for n in graph.nodes for v in n.outs if v.base is not None}
    fixed = {w.root for n in graph.nodes if n.form != "write" for w in n.writes}
    instead: dict[Value, Value] = {}
    changed = 0
    for node in graph.nodes:
        if instead:
            node.args = tuple([_replaced(a, instead) for a in node.args])
        into = node.into
        if node.form != "write" or into is None or into.node is None or into.base is not None:
            continue
        if into in viewed or into in fixed or node.draw is not None or node.plan.out is not into.spec:
            continue
        new = graph.value(into.spec, node=node)
        node.form, node.into, node.outs = "call", None, (new,)
        graph.renamed[instead.get(into, into)] = new
        instead[into] = new
        changed += 1
    return changed


def share(graph: Graph, wanted: set[Value]) -> int:
    """Calls of the same operator on the same values are one call; says how many were merged."""
    written = graph.written()
    seen: dict[Any, Node] = {}
    instead: dict[Value, Value] = {}
    kept: list[Node] = []
    protected = {v.root for v in wanted}
    for node in graph.nodes:
        if instead:
            node.args = tuple([_replaced(a, instead) for a in node.args])
        plain = node.form == "call" and not node.op.mutates and node.draw is None and node.outs
        if not plain or any(v.root in written for v in (*node.reads(), *node.outs)):
            kept.append(node)
            continue
        key = (id(node.op), tuple([_key(a) for a in node.args]))
        first = seen.get(key)
        # Two results that a caller gets must not become one.
        if (
            first is None
            or any(v.root in protected for v in node.outs)
            or (node.backward and not first.backward and node.is_view)
        ):
            seen.setdefault(key, node)
            kept.append(node)
            continue
        instead.update(zip(node.outs, first.outs, strict=True))
    merged = len(graph.nodes) - len(kept)
    graph.nodes = kept
    graph.renamed.update(instead)
    return merged


def _replaced(a: Any, instead: dict[Value, Value]) -> Any:
    if a.__class__ is Value:
        return instead.get(a, a)
    if a.__class__ is tuple:
        return tuple([_replaced(x, instead) for x in a])
    return a


def _key(a: Any) -> Any:
    if a.__class__ is tuple:
        return tuple([_key(x) for x in a])
    if a.__class__ is Value:
        return a
    return a.__class__, repr(a) if a.__class__ is float else id(a) if a.__class__.__hash__ is None else a
