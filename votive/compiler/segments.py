"""A graph in parts between calls that change weights. What is read before such a call is not what is read after it, but
within a part weights are what nobody writes, so that passes may join, share and move calls there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .graph import Graph, Node, Value


def is_step(node: Node) -> bool:
    """Whether a call only changes what others hold: a step of an optimizer, or the like."""
    if node.op.mutates and not node.outs:
        return True
    return node.into is not None and node.into.root.kind in ("input", "held") and node.into.root.leaf


def parts_of(nodes: list[Node]) -> list[list[Node]]:
    """Calls in their order, with each that changes weights on its own."""
    found: list[list[Node]] = [[]]
    for node in nodes:
        if is_step(node):
            found += [[node], []]
        else:
            found[-1].append(node)
    return [part for part in found if part] or [[]]


def each_part(graph: Graph, run: Callable[[set[Value]], Any]) -> None:
    """Let `run` change each part of a graph as if it were all of it; it is given what later parts read.

    Values that `run` finds to be others, in `graph.renamed`, are renamed in later parts.
    """
    parts = parts_of(graph.nodes)
    done: list[Node] = []
    for i, part in enumerate(parts):
        later = [n for p in parts[i + 1 :] for n in p]
        if len(part) == 1 and len(parts) > 1:  # a step, or a call on its own between two
            done += part
            continue
        graph.nodes = part
        graph.later = {v for n in later for v in (*n.reads(), *n.writes)}
        graph.later |= {v.base for v in graph.later if v.base is not None}
        before = graph.later
        run(graph.later)
        moved = {v: new for v in before if (new := graph.moved.get(v, v)) is not v}
        for n in later if moved else ():
            _rename(n, moved)
        done += graph.nodes
    graph.nodes, graph.later = done, set()
    graph.moved.clear()


def _rename(node: Node, instead: dict[Value, Value]) -> None:
    node.args = tuple([_replaced(a, instead) for a in node.args])
    if node.into is not None:
        node.into = instead.get(node.into, node.into)
    for v in node.outs:
        if v.base is not None:
            v.base = instead.get(v.base, v.base)


def _replaced(a: object, instead: dict[Value, Value]) -> Any:
    if a.__class__ is Value:
        return instead.get(a, a)
    return tuple([_replaced(x, instead) for x in a]) if a.__class__ is tuple else a
