"""What the backward pass computes again instead of keeping: the cheapest cut between the two passes, in bytes.

A value that backward reads is kept, or computed again from other values by calls that cost no more than reading memory.
Which to keep is a minimum cut: bytes are capacities, what must not be computed again come from the source, values
that backward reads lead to the sink.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from .backward import Joint, saved_values
from .graph import Graph, Node, Value
from .symbols import plain

_MANY = float("inf")


def _cheap(node: Node, written: set[Value]) -> bool:
    """Whether a call may be made again: it is elementwise or a view, and nothing it reads or gives is written later."""
    if node.form != "call" or node.draw is not None or node.op.mutates or not node.outs:
        return False
    cheap = node.op.kind in ("pointwise", "view") or node.op.elementwise or node.op.name == "_copy_as"
    if not cheap and any(True for _ in node.reads()):  # what is made of nothing is cheap, too
        return False
    return not any(v.root in written for v in (*node.reads(), *node.outs))


class _Flow:
    """A network and its maximum flow (Dinic)."""

    def __init__(self) -> None:
        self.edges: list[list[Any]] = []  # target, capacity left
        self.out: dict[Any, list[int]] = {}

    def add(self, a: object, b: object, capacity: float) -> None:
        for u, v, c in ((a, b, capacity), (b, a, 0.0)):
            self.out.setdefault(u, []).append(len(self.edges))
            self.edges.append([v, c])

    def _levels(self, source: Any) -> dict[Any, int]:
        level, queue = {source: 0}, deque([source])
        while queue:
            u = queue.popleft()
            for e in self.out.get(u, ()):
                v, c = self.edges[e]
                if c > 0 and v not in level:
                    level[v] = level[u] + 1
                    queue.append(v)
        return level

    def reachable(self, source: Any, sink: Any) -> dict[Any, int]:
        """What can still be reached from the source when no more flows to the sink."""
        while True:
            level = self._levels(source)
            if sink not in level:
                return level
            start = dict.fromkeys(level, 0)
            while self._push(source, sink, level, start):
                pass

    def _push(self, source: Any, sink: Any, level: dict[Any, int], start: dict[Any, int]) -> bool:
        path: list[int] = []
        u = source
        while u is not sink:
            edges = self.out[u]
            while start[u] < len(edges):
                v, c = self.edges[edges[start[u]]]
                if c > 0 and level.get(v) == level[u] + 1:
                    break
                start[u] += 1
            else:
                if u is source:
                    return False
                e = path.pop()
                u = self.edges[e ^ 1][0]
                start[u] += 1
                continue
            path.append(edges[start[u]])
            u = v
        least = min(self.edges[e][1] for e in path)
        for e in path:
            self.edges[e][1] -= least
            self.edges[e ^ 1][1] += least
        return True


def recompute(graph: Graph, joint: Joint | None, report: list[str]) -> int:
    """Let backward compute cheap values again where that keeps fewer bytes; says how many calls are made twice."""
    needed = [v for v in saved_values(graph.nodes, joint) if v.node is not None and not v.node.backward]
    if not needed:
        return 0
    written = graph.written()
    cheap = {v for n in graph.nodes if not n.backward and _cheap(n, written) for v in n.outs}
    kept = _cut(graph, set(needed), cheap)
    again = _between(graph, needed, kept)
    if not again:
        return 0
    copies: dict[Value, Value] = {}
    made: list[Node] = []
    for node in again:
        args = tuple([_replaced(a, copies) for a in node.args])
        twin = Node(node.op, args, single=node.single, path=node.path, line=node.line, plan=node.plan, backward=True)
        twin.paths = node.paths
        outs = []
        for i, v in enumerate(node.outs):
            base = None if v.base is None else copies.get(v.base, v.base)
            copies[v] = graph.value(v.spec, node=twin, index=i, base=base)
            outs.append(copies[v])
        twin.outs = tuple(outs)
        made.append(twin)
    _insert(graph, joint, made, copies)
    before = sum(plain(v.spec.nbytes) for v in needed)
    after = sum(plain(v.spec.nbytes) for v in kept if v.node is not None)
    report.append(f"kept for backward: {after} bytes, {before} without computing again")
    return len(made)


def _cut(graph: Graph, needed: set[Value], cheap: set[Value]) -> set[Value]:
    flow = _Flow()
    source, sink = "source", "sink"
    visible = {v.root for v in (*graph.outputs, *graph.later)}
    values = {*graph.inputs, *(v for n in graph.nodes if not n.backward for v in n.outs)}
    for v in values:
        free = v.node is None
        # Others may write over what they see; only what eager keeps, too, may be kept then.
        seen = (v.kind == "input" or v.root in visible) and v not in needed
        flow.add((v, 0), (v, 1), _MANY if seen else 0.0 if free else float(max(plain(v.spec.nbytes), 1)))
        if free or v not in cheap:
            flow.add(source, (v, 0), _MANY)
        else:
            assert v.node is not None
            reads = [u for u in v.node.reads() if u.kind != "constant"]
            if not reads:  # made of nothing: free to make again
                flow.add(source, (v, 0), 0.0)
            for u in reads:
                flow.add((u, 1), (v, 0), _MANY)
    for v in needed:
        flow.add((v, 1), sink, _MANY)
    reached = flow.reachable(source, sink)
    return {v for v in values if (v, 0) in reached and (v, 1) not in reached}


def _between(graph: Graph, needed: list[Value], kept: set[Value]) -> list[Node]:
    """The forward calls that backward needs again, in order."""
    wanted: set[Node] = set()
    stack = [v for v in needed if v not in kept]
    while stack:
        v = stack.pop()
        if v in kept or v.node is None or v.node in wanted:
            continue
        wanted.add(v.node)
        stack.extend(v.node.reads())
    return [n for n in graph.nodes if n in wanted]


def _insert(graph: Graph, joint: Joint | None, made: list[Node], copies: dict[Value, Value]) -> None:
    """Put each call just before the first that reads it, so that what it gives lives shortly."""
    twin_of = {v: n for n in made for v in n.outs}
    done: set[Node] = set()
    nodes: list[Node] = []

    def place(node: Node) -> None:
        stack = [(node, False)]
        while stack:
            n, ready = stack.pop()
            if n in done:
                continue
            if ready:
                done.add(n)
                nodes.append(n)
                continue
            stack.append((n, True))
            stack.extend((twin_of[v], False) for v in n.reads() if v in twin_of and twin_of[v] not in done)

    for node in graph.nodes:
        if node.backward:
            node.args = tuple([_replaced(a, copies) for a in node.args])
            for v in node.outs:
                if v.base is not None:
                    v.base = copies.get(v.base, v.base)
            for v in node.reads():
                if v in twin_of and twin_of[v] not in done:
                    place(twin_of[v])
        nodes.append(node)
    if joint is not None:
        joint.grads = [None if g is None else copies.get(g, g) for g in joint.grads]
    for g in joint.grads if joint is not None else ():
        if g in twin_of and twin_of[g] not in done:
            place(twin_of[g])
    graph.nodes = nodes


def _replaced(a: object, copies: dict[Value, Value]) -> Any:
    if a.__class__ is Value:
        return copies.get(a, a)
    if a.__class__ is tuple:
        return tuple([_replaced(x, copies) for x in a])
    return a
