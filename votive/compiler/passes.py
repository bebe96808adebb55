"""What is done to a graph before it is emitted: rewrites that do not change what a program computes."""

from __future__ import annotations

from typing import Any

from .backward import Joint
from .graph import Graph, Node, Value


def improve(graph: Graph, joint: Joint | None, report: list[str], options: Any) -> None:
    """Run every pass in order; each says in `report` what it did."""
    wanted = {*graph.outputs, *(g for g in (joint.grads if joint else ()) if g is not None)}
    before = len(graph.nodes)
    remove_dead(graph, wanted)
    if before > len(graph.nodes):
        report.append(f"dead code: {before - len(graph.nodes)} of {before} calls")


def remove_dead(graph: Graph, wanted: set[Value]) -> None:
    """Drop calls whose results nobody uses and that write nowhere that is seen later."""
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
