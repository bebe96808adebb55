"""The backward pass of a traced function: autograd's own rules run once while they are traced, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import engine
from ..core.mode import mode
from ..ops.registry import F
from .graph import Node, Value
from .trace import Tracer


class Joint:
    """Forward and backward of a graph: which outputs have gradients, which inputs get them, and what is kept between."""

    def __init__(self, outputs: list[int], inputs: list[int], tangents: list[Value], grads: list[Value | None]) -> None:
        self.outputs, self.inputs, self.tangents, self.grads = outputs, inputs, tangents, grads


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
    leaves = [ins[i] for i in want]
    hooks = [(t, t._hooks) for t in leaves if t._hooks]
    for t, _ in hooks:  # these see real gradients only
        t._hooks = None
    tracer.backward = True
    try:
        grads = engine.grad([outs[i] for i in have], [*leaves, *looked], given, retain_graph=True, allow_unused=True)
    finally:
        tracer.backward = False
        for t, table in hooks:
            t._hooks = table
    values = [None if g is None else tracer.value_of(g) for g in grads]
    return Joint(have, want, tangents, values)


def saved_values(nodes: list[Node], joint: Joint) -> list[Value]:
    """What the backward nodes read that they do not make."""
    back = [n for n in nodes if n.backward]
    made = {v for n in back for v in n.outs} | set(joint.tangents)
    found: dict[Value, None] = {}
    for n in back:
        for v in (*n.reads(), *n.writes):
            if v not in made and v.kind != "constant":
                found[v] = None
    for g in joint.grads:
        if g is not None and g not in made and g.kind != "constant":
            found[g] = None
    return list(found)
