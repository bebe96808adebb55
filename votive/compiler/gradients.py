"""`backward()` and `grad()` inside of a traced program.

While the program is traced, gradients are computed as always and one node stands for them. When the forward calls were
rewritten and are run once more, autograd's own rules run in its place, and what they call are the nodes of the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import engine
from ..autograd.accumulate import fit
from ..autograd.graph import BaseNode, Edge
from ..autograd.views import edge_of
from ..core.errors import AutogradError
from ..core.mode import mode
from ..dispatch import state
from ..tensor import Tensor
from .graph import Node, Value
from .places import Below
from .trace import Tracer, Untraceable
from .watch import FUNCTIONS, Watch


class Gradients:
    """Stands for a backward pass in a graph, as the operator of one node: (roots, their gradients) -> gradients."""

    name, kind, mutates, elementwise, differentiable = "gradients", "gradients", (), False, False

    def __init__(self, by: list[Value], keep: bool) -> None:
        self.by, self.keep = by, keep
        self.autocast = mode.autocast


def is_gradients(node: Node) -> bool:
    """Whether a node stands for a backward pass."""
    return node.op.__class__ is Gradients


def _key(edge: Any) -> tuple[int, int]:
    return (id(edge.node), edge.nr) if isinstance(edge, (BaseNode, Edge)) else (id(edge), 0)


class _Pass(engine.Task):
    """A backward pass that ends at the tensors asked for, and at what was recorded before the trace."""

    start = 0
    ends: frozenset[Any] = frozenset()

    def send(self, edge: Any, grad: Any) -> None:
        key = _key(edge)
        if key in self.ends:
            inner = isinstance(edge, (BaseNode, Edge))
            spec = edge.node.grad_specs[edge.nr] if inner else edge._spec
            self.captures[key] = self.add(self.captures[key], fit(grad, spec) if grad._spec is not spec else grad)
        elif isinstance(edge, (BaseNode, Edge)):
            super().send(edge, grad)


def _walked(outs: list[Any], given: Any, by: Sequence[Any], keep: bool, start: int) -> list[Any]:
    """Gradients of tensors by others, None where there is none."""
    edges = [edge_of(t) for t in by]
    keys = [_key(e) for e in edges]
    task = _Pass(keep, False, dict.fromkeys(keys))
    task.start = start
    outside = [not isinstance(e, (BaseNode, Edge)) or e.node.seq <= start for e in edges]
    task.ends = frozenset(k for k, out in zip(keys, outside, strict=True) if out)
    roots = engine._start("backward", outs, given)
    task.wanted, task.through = engine.mark([e for e, _ in roots], {k[0] for k in keys})
    task.wanted |= {k[0] for k in keys}
    engine.walk(task, roots, False)
    return [task.captures[k] for k in keys]


# --- while a program is traced ---------------------------------------------------------------------


class _Reached:
    """What a backward pass from some tensors comes by."""

    def __init__(self, watch: Watch, roots: Sequence[Any], by: Sequence[Any] | None) -> None:
        self.leaves: list[Any] = []
        self.why = ""
        start = watch.tracer.start
        ends = {_key(edge_of(x)) for x in by or () if x._rg}
        stack: list[Any] = [edge_of(t) for t in roots if t._rg]
        seen: set[Any] = set()
        wanted = engine.mark(stack, {k[0] for k in ends})[0] if by is not None else None
        while stack:
            e = stack.pop()
            inner = isinstance(e, (BaseNode, Edge))
            key = (id(e.node), 0) if inner else (id(e), 0)
            if e is None or (_key(e) in ends and (not inner or e.node.seq <= start)) or key in seen:
                continue
            seen.add(key)
            if not inner:
                if by is None:
                    self._leaf(watch, e)
                continue
            node = e.node
            if wanted is not None and id(node) not in wanted and key[0] not in {k[0] for k in ends}:
                continue
            if node.seq <= start:
                self.why = self.why or "a gradient goes on to what was computed outside"
                continue
            if node.tensor_hooks or node.retained or node.pre_hooks or node.post_hooks:
                self.why = "hooks wait for gradients inside"
            stack.extend(x for x in node.edges if x is not None)
        for x in by or ():
            if x._rg and not isinstance(edge_of(x), (BaseNode, Edge)):
                self._leaf(watch, x)

    def _leaf(self, watch: Watch, leaf: Any) -> None:
        known = watch.tensors.get(id(leaf))
        if known is None:
            self.why = "a tensor that requires a gradient was made inside"
            return
        for table in ("_hooks", "_post_hooks"):
            if getattr(leaf, table):
                self.why = "hooks wait for the gradient of a tensor"
            elif getattr(leaf, table) is None:
                watch.guards.equal(Below(known[1], "attr", table), None)
            else:
                watch.guards.equal(Below(Below(known[1], "attr", table), "len"), 0)
        self.leaves.append(leaf)


def _obstacle(watch: Watch, roots: list[Any], given: Any, keep_first: bool) -> str:
    if state.watcher is not None:
        return "somebody watches gradients"
    if watch.keeps_graph:
        return "somebody looks at values together with autograd's graph"
    if keep_first and any(t._spec.device.type == "cuda" for t in roots):
        return "on a GPU the graphs of forward and backward are replayed one by one"
    return ""


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, state.tensor) else list(tensors)


def _recorded(watch: Watch, roots: list[Any], given: Any, by: list[Any], keep: bool) -> list[Any]:
    """Compute gradients and write one node for them; the gradients are tensors of their own."""
    tracer = watch.tracer
    seeds = [None] * len(roots) if given is None else [given] if isinstance(given, state.tensor) else list(given)
    args = (tracer._arg(roots), tracer._arg(seeds))
    op = Gradients([tracer.value_of(x) for x in by], keep)
    node = Node(op, args, single=False, line=tracer.where(), grad=False)  # type: ignore[arg-type]
    mode.unobserved += 1
    try:
        found = _walked(roots, given, by, keep, tracer.start)
        found = [None if g is None else g.detach().clone() for g in found]
    finally:
        mode.unobserved -= 1
    have = [i for i, g in enumerate(found) if g is not None]
    op.by = [op.by[i] for i in have]
    node.outs = tuple([tracer._result(node, k, found[i]) for k, i in enumerate(have)])
    tracer.graph.nodes.append(node)
    return found


def _accumulated(watch: Watch, leaf: Any, grad: Any) -> None:
    watch.effects.slot(leaf)
    if leaf._grad is None:
        leaf._grad = grad
        return
    saved, mode.grad = mode.grad, False
    try:
        leaf._grad.add_(grad)
    finally:
        mode.grad = saved


def traced_backward(watch: Watch, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`votive.autograd.backward` and `Tensor.backward`."""
    names = ("tensors", "grad_tensors", "retain_graph", "create_graph", "inputs")
    options = {
        **dict(zip(names, args, strict=False)),
        **{"grad_tensors" if k == "gradient" else k: v for k, v in kwargs.items()},
    }
    roots, given, by = _listed(options["tensors"]), options.get("grad_tensors"), options.get("inputs")
    create, keep = options.get("create_graph") or False, options.get("retain_graph")
    listed = None if by is None else _listed(by)
    reached = _Reached(watch, roots, listed)
    why = reached.why or _obstacle(watch, roots, given, watch.replays)
    if not why and listed is not None and any(edge_of(x).__class__ in (Edge,) or x._edge is not None for x in listed):
        why = "it computes the gradient of a tensor that is no leaf"
    if why:
        watch.stop(why)
        return fn(*args, **kwargs)
    if any(not t._rg for t in roots):
        watch.stop("it computes the gradient of a tensor that has none")
        return fn(*args, **kwargs)
    if create:
        for leaf in reached.leaves:
            watch.effects.slot(leaf)
        return fn(*args, **kwargs)
    try:
        found = _recorded(watch, roots, given, reached.leaves, bool(keep))
    except Exception:
        watch.stop("a gradient cannot be computed")
        raise
    for leaf, g in zip(reached.leaves, found, strict=True):
        if g is not None:
            _accumulated(watch, leaf, g)
    return None


_GRAD_ARGUMENTS = tuple(inspect.signature(engine.grad).parameters)


def traced_grad(watch: Watch, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`votive.autograd.grad`."""
    options = {**dict(zip(_GRAD_ARGUMENTS, args, strict=False)), **kwargs}
    roots, by = _listed(options["outputs"]), _listed(options["inputs"])
    given = options.get("grad_outputs")
    why = "" if all(t._rg for t in (*roots, *by)) else "it computes the gradient of a tensor that has none"
    why = why or _Reached(watch, roots, by).why or _obstacle(watch, roots, given, watch.replays)
    if why or options.get("is_grads_batched"):
        watch.stop(why or "it computes a batch of gradients")
        return fn(*args, **kwargs)
    if options.get("create_graph"):
        return fn(*args, **kwargs)
    materialize, unused = options.get("materialize_grads", False), options.get("allow_unused")
    if materialize and unused is False:
        return fn(*args, **kwargs)  # says what is wrong
    try:
        found = _recorded(watch, roots, given, by, bool(options.get("retain_graph")))
    except Exception:
        watch.stop("a gradient cannot be computed")
        raise
    if any(g is None for g in found) and not unused and not materialize:
        watch.stop("a gradient cannot be computed")
        raise AutogradError(
            "grad: one of the differentiated tensors appears to not have been used in the "
            "graph; set allow_unused=True if this is the desired behavior."
        )
    if materialize:
        found = [x.new_zeros(tuple(x.shape)) if g is None else g for x, g in zip(by, found, strict=True)]
    return tuple(found)


# --- when the graph is run once more ---------------------------------------------------------------


def expand(tracer: Tracer, node: Node, values: dict[Value, Any], used: set[Value]) -> None:
    """Let autograd's rules run in place of a node; their calls become the nodes of the tracer's graph."""
    op: Any = node.op
    roots, seeds = node.args
    given = [None if v is None else values[v] for v in seeds]
    by = [values[v] for v in op.by]
    saved = mode.autocast, mode.grad
    mode.autocast = op.autocast
    tracer.backward = True
    try:
        found = _walked([values[v] for v in roots], given, by, op.keep, tracer.start)
        mode.grad = False
        for v, x, g in zip(node.outs, by, found, strict=True):
            if g is None:
                raise Untraceable("a gradient is missing when the program is run once more")
            values[v] = _own(tracer, g, x, used)
    finally:
        tracer.backward = False
        mode.autocast, mode.grad = saved


def _own(tracer: Tracer, grad: Any, leaf: Any, used: set[Value]) -> Any:
    """A gradient with memory that nobody else sees, as it becomes `.grad`."""
    value = tracer.value_of(grad)
    plain = value.node is not None and value.node.backward and value.base is None and value not in used
    shown = any(v.base is value for n in tracer.graph.nodes for v in n.outs)
    if not plain or shown or not (grad._spec.contiguous or grad._spec is leaf._spec):
        grad = grad.detach().clone()
        value = tracer.value_of(grad)
    used.add(value)
    return grad


# --- results whose gradients are computed already ----------------------------------------------------


def is_spent(tensor: Any, start: int) -> bool:
    """Whether a backward pass has let go of what the gradient of a tensor needs."""
    stack: list[Any] = [edge_of(tensor)] if tensor._rg else []
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if not isinstance(e, (BaseNode, Edge)) or id(e.node) in seen or e.node.seq <= start:
            continue
        seen.add(id(e.node))
        if getattr(e.node, "kept", ()) is None:
            return True
        stack.extend(e.node.edges)
    return False


class Spent(BaseNode):
    """Where a result comes from whose gradient was computed inside of a compiled program."""

    def __init__(self, spec: Any) -> None:
        self.edges, self.grad_specs, self.seq = (), (spec,), 0

    def name(self) -> str:
        return "CompiledBackward"

    def apply(self, grads: list[Any]) -> tuple[Any, ...]:
        raise AutogradError(
            "compiled: trying to backward through the graph a second time, but its saved values have already been "
            "freed; pass retain_graph=True the first time."
        )


def spend(tensor: Any) -> None:
    """Let a result know that its gradient was computed inside."""
    tensor._rg, tensor._edge = True, Spent(tensor._spec)


Handler = Callable[[Watch, Any, tuple[Any, ...], dict[str, Any]], Any]
_HANDLERS: dict[Any, Handler] = {
    engine.backward: traced_backward,
    Tensor.backward: traced_backward,
    engine.grad: traced_grad,
}
FUNCTIONS.update(_HANDLERS)
