"""Memory: a call whose kernel may write over what it reads does so, where nobody looks at that any more."""

from __future__ import annotations

from typing import Any

from ..dispatch import StructuredPlan
from .graph import Graph, Node, Value


def reuse(graph: Graph, wanted: set[Value]) -> int:
    """Let calls write over operands of the graph's own that they are the last to read; says how many do."""
    visible = {v.root for v in wanted}
    written = graph.written()
    last: dict[Value, int] = {}  # of memory, by its owner
    for i, node in enumerate(graph.nodes):
        for v in (*node.reads(), *node.writes, *node.outs):
            last[v.root] = i
    changed = 0
    instead: dict[Value, Value] = {}
    for i, node in enumerate(graph.nodes):
        if instead:
            node.args = tuple([_replaced(a, instead) for a in node.args])
            for v in node.outs:
                v.base = instead.get(v.base, v.base) if v.base is not None else None
        plan = node.plan
        if node.form != "call" or len(node.outs) != 1 or not isinstance(plan, StructuredPlan) or node.draw is not None:
            continue
        if plan.into is None or not plan.row.careful or node.outs[0] in wanted:
            continue
        out = node.outs[0]
        for v in node.reads():
            root = v.root
            if v.spec is not out.spec or root.node is None or root in visible or root in written or last[root] != i:
                continue
            node.form, node.into, node.outs = "over", v, ()
            instead[out] = v
            graph.renamed[out] = v
            last[root] = last.get(out, i)
            changed += 1
            break
    return changed


def overwritten(nodes: list[Node]) -> set[Value]:
    """The owners of memory that calls write over for want of others who look."""
    return {n.into.root for n in nodes if n.form == "over" and n.into is not None}


def _replaced(a: object, instead: dict[Value, Value]) -> Any:
    if a.__class__ is Value:
        return instead.get(a, a)
    return tuple([_replaced(x, instead) for x in a]) if a.__class__ is tuple else a
