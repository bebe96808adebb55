"""A rewritten forward graph, run once more on the same inputs while it is traced, so that autograd knows its calls."""

from __future__ import annotations

from typing import Any

from ..core.mode import mode
from .gradients import expand, is_gradients
from .graph import Graph, Node, Value
from .segments import is_step
from .trace import Tracer, draw_arguments, place_of


def repeatable(graph: Graph, inputs: list[Any]) -> list[Any] | None:
    """Inputs to run a graph with once more: copies of those that it writes; None where that would change something."""
    written = {v.root for node in graph.nodes if not is_step(node) for v in node.writes}  # others are not run
    found = []
    for v, t in zip(graph.inputs, inputs, strict=True):
        if v.root not in written:
            found.append(t)
            continue
        shared = sum(o._storage.root is t._storage.root for o in inputs) > 1
        mode.unobserved += 1
        copy = None if shared else t.detach().clone()
        mode.unobserved -= 1
        if copy is None or copy._spec is not t._spec:
            return None
        found.append(copy)
    return found


def rerun(graph: Graph, inputs: list[Any]) -> tuple[Tracer, list[Any]]:
    """(a tracer with the graph of this run, the outputs). Inputs and constants keep their values."""
    tracer = Tracer()
    new = tracer.graph
    new.count, new.constants = graph.count, dict(graph.constants)
    held = {**dict(zip(graph.inputs, inputs, strict=True)), **{v: t.clone() for v, t in graph.constants.items()}}
    for v, t in held.items():
        tracer.known.setdefault(place_of(t), v)
        tracer.named[id(t)] = v
        tracer.alive.append((t, t._storage))
    new.inputs = list(graph.inputs)
    tracer.draws = list({id(n.draw): n.draw for n in graph.nodes if n.draw is not None}.values())
    values: dict[Value, Any] = dict(held)
    used: set[Value] = set()
    autocast, mode.autocast = mode.autocast, {}
    path, grad = mode.module_path, mode.grad
    mode.grad = grad or any(is_gradients(n) for n in graph.nodes)  # of each call it is known whether it was on
    try:
        with tracer:
            for node in graph.nodes:
                mode.module_path = node.path
                tracer.where = lambda node=node: node.line
                if is_gradients(node):
                    expand(tracer, node, values, used)
                elif is_step(node):
                    new.nodes.append(_renamed(tracer, node, values))
                else:
                    run_node(node, values)
                    if node.paths and new.nodes:
                        new.nodes[-1].paths = node.paths
    finally:
        mode.autocast, mode.module_path, mode.grad = autocast, path, grad
    return tracer, [values[v] for v in graph.outputs]


def _renamed(tracer: Tracer, node: Node, values: dict[Value, Any]) -> Node:
    """A call that changes what others hold, for the graph of this run. It is not made: nothing must change twice."""
    args = tuple([tracer._arg(_filled(a, values)) for a in node.args])
    made = Node(node.op, args, form=node.form, path=node.path, line=node.line, draw=node.draw, grad=node.grad)
    made.into = None if node.into is None else tracer.value_of(values[node.into])
    made.paths = node.paths
    return made


def run_node(node: Node, values: dict[Value, Any], draws: dict[int, Any] | None = None) -> None:
    """Make one call; `draws` are the counters of another run than the traced one, by the identity of draws."""
    args = [_filled(a, _without(node.cut, values)) for a in node.args]
    if node.draw is not None:
        taken = node.draw.taken if draws is None else draws[id(node.draw)]
        for i, word in zip(draw_arguments(node.op), taken, strict=True):
            args[i] = word
    grad, mode.grad = mode.grad, mode.grad and node.grad
    try:
        found = node.op.write(tuple(args)) if node.form == "write" else node.op.apply(tuple(args))
    finally:
        mode.grad = grad
    for v, t in zip(node.outs, (found,) if node.single else found, strict=True) if node.form != "write" else ():
        values[v] = t


def _without(cut: tuple[Value, ...], values: dict[Value, Any]) -> dict[Value, Any]:
    """Values, with those that a call got without their gradients detached."""
    if not any(values[v]._rg for v in cut):
        return values
    return {**values, **{v: values[v].detach() for v in cut}}


def _filled(a: object, values: dict[Value, Any]) -> Any:
    if a.__class__ is Value:
        return values[a]
    if a.__class__ is tuple:
        return tuple([_filled(x, values) for x in a])
    return a
