"""The backward pass of a traced function: autograd's own rules run once while they are traced, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.accumulate import fit
from ..autograd.engine import Task, mark, walk
from ..autograd.graph import BaseNode, Edge
from ..autograd.views import edge_of
from ..core.mode import mode
from ..ops.registry import F
from .graph import Node, Value
from .trace import Tracer, Untraceable

# Which of several incoming gradients something comes from, by their numbers.
Sources = frozenset[int]
NONE: Sources = frozenset()


class Joint:
    """Forward and backward of a graph: which outputs have gradients, which inputs get them, what is kept between.

    `sources` are those of each outgoing gradient: where none of them came, there is none. They are those of the graph
    that autograd walks, since a rule may answer with zeros that nothing is computed from (of values drawn anew).
    """

    def __init__(
        self,
        outputs: list[int],
        inputs: list[int],
        tangents: list[Value],
        grads: list[Value | None],
        sources: list[Sources],
    ) -> None:
        self.outputs, self.inputs, self.tangents, self.grads = outputs, inputs, tangents, grads
        self.sources = sources


def trace_backward(tracer: Tracer, outs: list[Any], ins: list[Any], looked: Sequence[Any] = ()) -> Joint | None:
    """Trace the gradients of results by the inputs that want some; None where there is nothing to do.

    Those by values that are `looked` at come behind them.

    The values of the incoming gradients do not matter, only what is computed with them.
    """
    graph = tracer.graph
    want = [i for i, t in enumerate(ins) if t._rg]
    have = [i for i, t in enumerate(outs) if t._rg]
    if not want or not have:
        return None
    tangents: list[Value] = []
    given: list[Any] = []
    for i in have:
        spec = outs[i]._spec
        mode.unobserved += 1
        t = F.ones(spec.shape, dtype=spec.dtype, device=spec.device)
        mode.unobserved -= 1
        value = tracer.name(t, "tangent", f"gradient of result {i}")
        graph.inputs.remove(value)
        tangents.append(value)
        given.append(t)
    tracer.backward = True
    try:
        grads, sources = _gradients([outs[i] for i in have], given, [ins[i] for i in want], looked, tracer.start)
    finally:
        tracer.backward = False
    values = [None if g is None else tracer.value_of(g) for g in grads]
    return Joint(have, want, tangents, values, sources)


class _Inside(Task):
    """A backward pass that ends at the inputs of a trace: what made them, and who waits there, is outside."""

    start = 0
    ends: frozenset[Any] = frozenset()
    begun = 0

    def __init__(self, captures: dict[Any, Any]) -> None:
        super().__init__(True, False, captures)
        # What gradients at (node, result) come from, and those that the step at hand sends.
        self.come: dict[Any, Sources] = {}
        self.here: Sources | None = None

    def send(self, edge: Any, grad: Any) -> None:
        inner = isinstance(edge, (BaseNode, Edge))
        key = (id(edge.node), edge.nr) if inner else (id(edge), 0)
        if self.here is None:  # where the pass begins
            self.come[key] = self.come.get(key, NONE) | {self.begun}
            self.begun += 1
        else:
            self.come[key] = self.come.get(key, NONE) | self.here
        if key in self.ends:
            grad = fit(grad, edge.node.grad_specs[edge.nr] if inner else edge._spec)
            self.captures[key] = self.add(self.captures[key], grad)
        elif not inner:
            raise Untraceable("a tensor that requires grad was made inside")
        elif edge.node.seq <= self.start:
            raise Untraceable("a gradient would leave by a tensor that is not known")
        else:
            super().send(edge, grad)

    def step(self, node: BaseNode, grads: list[Any]) -> None:
        if node.tensor_hooks or node.retained or node.pre_hooks or node.post_hooks:
            raise Untraceable("hooks wait for gradients inside")
        self.here = NONE.union(*[self.come.get((id(node), nr), NONE) for nr in range(len(grads))])
        super().step(node, grads)


def _gradients(
    outs: list[Any], given: list[Any], ins: list[Any], looked: Sequence[Any], start: int
) -> tuple[list[Any], list[Sources]]:
    """Gradients of outputs by inputs, and by values between, as far as what was recorded after `start` leads."""
    edges = [edge_of(t) for t in (*ins, *looked)]
    keys = [(id(e.node), e.nr) if isinstance(e, (BaseNode, Edge)) else (id(e), 0) for e in edges]
    task = _Inside(dict.fromkeys(keys))
    task.ends = frozenset(keys[: len(ins)])
    task.start = start
    roots = [(edge_of(t), g) for t, g in zip(outs, given, strict=True)]
    task.wanted, task.through = mark([e for e, _ in roots], {k[0] for k in keys})
    task.wanted |= {k[0] for k in keys}
    walk(task, roots, False)
    return [task.captures[k] for k in keys], [task.come.get(k, NONE) for k in keys]


def saved_values(nodes: list[Node], joint: Joint | None) -> list[Value]:
    """What the backward nodes read that they do not make."""
    back = [n for n in nodes if n.backward]
    made = {v for n in back for v in n.outs} | set(joint.tangents if joint else ())
    found: dict[Value, None] = {}
    for n in back:
        for v in (*n.reads(), *n.writes):
            if v not in made and v.kind != "constant":
                found[v] = None
    for g in joint.grads if joint else ():
        if g is not None and g not in made and g.kind != "constant":
            found[g] = None
    return list(found)


def needed_by(back: list[Node], joint: Joint, saved: list[Value]) -> list[frozenset[int]]:
    """Of each incoming gradient: the kept values, by number, that are read on the way from it."""
    found: list[set[int]] = [set() for _ in joint.tangents]
    come: dict[Value, Sources] = {v: frozenset([i]) for i, v in enumerate(joint.tangents)}
    made_of: dict[Value, frozenset[int]] = {}
    for i, v in enumerate(saved):
        made_of[v.root] = made_of.get(v.root, NONE) | {i}
    for node in back:
        reads = [v.root for v in (*node.reads(), *node.writes)]
        come_by = NONE.union(*[come.get(v, NONE) for v in reads])
        kept = NONE.union(*[made_of.get(v, NONE) for v in reads if v not in come])
        for k in come_by:
            found[k] |= kept
        for v in (*node.outs, *node.writes):
            if come_by:
                come[v.root] = come.get(v.root, NONE) | come_by
            else:
                made_of[v.root] = made_of.get(v.root, NONE) | kept
    for g, sources in zip(joint.grads, joint.sources, strict=True):
        # Zeros by a rule are computed from no incoming gradient, and still are the answer to some.
        if g is not None and g.root not in come:
            for k in sources:
                found[k] |= made_of.get(g.root, NONE)
    return [frozenset(f) for f in found]
