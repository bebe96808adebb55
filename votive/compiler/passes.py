"""What is done to a graph before it is emitted: rewrites that do not change what a program computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.layout import contiguous_strides
from ..ops.registry import OPS
from .backward import Joint
from .fusion import fuse
from .graph import Graph, Node, Value
from .memory import reuse
from .recompute import recompute
from .segments import each_part
from .symbols import is_symbolic, key_of


def improve(graph: Graph, joint: Joint | None, report: list[str]) -> None:
    """Run every pass over each part of a graph."""
    each_part(graph, lambda later: _improve(graph, joint, report))
    for node in graph.nodes:
        node.plan = None  # plans hold on to kernels that may never run again


def _improve(graph: Graph, joint: Joint | None, report: list[str]) -> None:
    """Run every pass in order; each says in `report` what it did."""

    def wanted() -> set[Value]:
        grads = (g for g in (joint.grads if joint else ()) if g is not None)
        return {*graph.outputs, *grads, *graph.later}

    passes: list[tuple[str, Callable[[], int]]] = [
        ("dead code", lambda: remove_dead(graph, wanted())),
        ("writes in place that nobody sees", lambda: without_writes(graph)),
        ("windows side by side", lambda: join_windows(graph, wanted())),
        ("common subexpressions", lambda: share(graph, wanted())),
        ("computed again in backward", lambda: recompute(graph, joint, report)),
        ("computed in backward only", lambda: remove_dead(graph, wanted())),
        ("elementwise calls in regions", lambda: fuse(graph, wanted(), report)),
        ("dead code after that", lambda: remove_dead(graph, wanted())),
        ("written over what was read last", lambda: reuse(graph, wanted())),
    ]
    for name, run in passes:
        before = len(graph.nodes)
        changed = run()
        graph.outputs = [graph.resolve(v) for v in graph.outputs]
        if joint is not None:
            joint.grads = [None if g is None else graph.resolve(g) for g in joint.grads]
        graph.later = {graph.resolve(v) for v in graph.later}
        graph.moved = {v: graph.resolve(new) for v, new in graph.moved.items()}
        graph.moved |= {v: graph.resolve(v) for v in graph.renamed if v not in graph.moved}
        graph.renamed.clear()  # the next pass may find a value to be another one that is not its latest
        if changed:
            report.append(f"{name}: {changed} of {before} calls")


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
    """A call that writes over a value which the graph has made, and which no view shows yet, gives a new value."""
    shown: set[Value] = set()
    fixed = {w.root for n in graph.nodes if n.form != "write" for w in n.writes}
    instead: dict[Value, Value] = {}
    changed = 0
    for node in graph.nodes:
        if instead:
            node.args = tuple([_replaced(a, instead) for a in node.args])
            if node.into is not None:
                node.into = instead.get(node.into, node.into)
            for v in node.outs:
                v.base = instead.get(v.base, v.base) if v.base is not None else None
        shown.update(v.base for v in node.outs if v.base is not None)
        into = node.into
        if node.form != "write" or into is None or into.node is None or into.base is not None:
            continue
        if into in shown or into in fixed or node.draw is not None or node.plan.out is not into.spec:
            continue
        new = graph.value(into.spec, node=node)
        node.form, node.into, node.outs = "call", None, (new,)
        graph.renamed[into] = new
        instead[into] = new
        for old, v in instead.items():
            if v is into:
                instead[old] = new
        changed += 1
    return changed


def join_windows(graph: Graph, wanted: set[Value]) -> int:
    """A sum of windows in zeros that lie side by side and fill the whole is what is in them, put together."""
    users = graph.users()
    written = graph.written()
    changed = 0
    for node in list(graph.nodes):
        if not _is_sum(node) or node.outs[0].root in written:
            continue
        found = users.get(node.outs[0], [])
        if len(found) == 1 and _is_sum(found[0]) and node.outs[0] not in wanted:
            continue  # part of a longer sum
        parts = _summands(node, users, wanted)
        whole = _side_by_side([p for p in parts if p.op.name == "_into_window"]) if len(parts) > 1 else None
        if whole is None or any(p.op.name != "_into_window" for p in parts):
            continue
        order, dim = whole
        node.op, node.args, node.plan = OPS["cat"], (tuple([p.args[0] for p in order]), dim), None
        changed += len(parts)
    return changed


def _is_sum(node: Node) -> bool:
    return node.op.name == "add" and node.form == "call" and node.args[2] == 1


def _summands(node: Node, users: dict[Value, list[Node]], wanted: set[Value]) -> list[Node]:
    """The calls whose results are added up, where nobody else looks at these; empty if one is not known."""
    found: list[Node] = []
    stack = [(a, node) for a in reversed(node.args[:2])]  # sums may be longer than Python calls itself
    while stack:
        a, user = stack.pop()
        if a.__class__ is not Value or a.node is None or a in wanted or users.get(a) != [user]:
            return []
        if _is_sum(a.node):
            stack.extend((b, a.node) for b in reversed(a.node.args[:2]))
        else:
            found.append(a.node)
    return found


def _side_by_side(windows: list[Node]) -> tuple[list[Node], int] | None:
    """Windows in the order in which they fill a whole along one dimension, and that dimension."""
    size, strides = windows[0].args[1:3] if windows else ((), ())
    if not size or any(w.args[1:3] != (size, strides) for w in windows) or strides != contiguous_strides(size):
        return None
    shapes = [w.args[0].spec.shape for w in windows]
    for dim, n in enumerate(size):
        if any(len(s) != len(size) or s[:dim] + s[dim + 1 :] != size[:dim] + size[dim + 1 :] for s in shapes):
            continue
        order = sorted(windows, key=lambda w: w.args[3])
        start = 0
        for w in order:
            if w.args[3] != start * strides[dim]:
                return None
            start += w.args[0].spec.shape[dim]
        return (order, dim) if start == n else None
    return None


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


def _replaced(a: object, instead: dict[Value, Value]) -> Any:
    if a.__class__ is Value:
        return instead.get(a, a)
    if a.__class__ is tuple:
        return tuple([_replaced(x, instead) for x in a])
    return a


def _key(a: object) -> Any:
    if a.__class__ is tuple:
        return tuple([_key(x) for x in a])
    if a.__class__ is Value:
        return a
    if is_symbolic(a):
        return key_of(a)
    return a.__class__, repr(a) if a.__class__ is float else id(a) if a.__class__.__hash__ is None else a
