"""A backward pass in two halves: gradients of inputs now, those of weights later. Knows the graph, not stages.

A node that leads both to inputs and to weights, such as a product, runs twice, each time for one side of what it gives:
its recipe is asked for the narrower set of gradients. Where a node cannot be asked so (a function of a user's), it runs
once and what it gave to the weights is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.edges import GradientEdge
from ...autograd.engine import backward, grad
from ...autograd.graph import BaseNode, Edge, accumulator
from ...autograd.recipes import recipe_for
from ...autograd.views import edge_of
from ...tensor import Tensor


class WeightHalf:
    """What is left of a backward pass: `run` adds the gradients of the weights up."""

    def __init__(self) -> None:
        self.edges: list[Any] = []
        self.grads: list[Tensor] = []
        self._restored: list[tuple[Any, Any]] = []

    def run(self) -> None:
        """Make the gradients of the weights."""
        edges, grads = self.edges, self.grads
        self.edges, self.grads = [], []
        if edges:
            backward(edges, grads)


class Narrow:
    """A recipe that gives some of its gradients only: rules may give more than they are asked for."""

    def __init__(self, wide: Any, mask: tuple[bool, ...]) -> None:
        self.recipe, self.mask = recipe_for(wide.plan, mask), mask

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["recipe"], name)

    def run(self, node: Any, grads: list[Any]) -> tuple[Any, ...]:
        """The gradients that are wanted, None for the others."""
        found = self.recipe.run(node, grads)
        return tuple(g if m else None for g, m in zip(found, self.mask, strict=True))


def input_half(
    outputs: Sequence[Tensor], grads: Sequence[Tensor | None], inputs: Sequence[Tensor]
) -> tuple[list[Tensor | None], WeightHalf]:
    """The gradients of `inputs`, leaves of the graph, and what is left to do for all other leaves.

    >>> from votive.distributed.pipelining.halves import input_half
    >>> w, x = (votive.full((1,), n, requires_grad=True) for n in (2.0, 3.0))
    >>> (found,), rest = input_half([w * x], [votive.ones(1)], [x])
    >>> found, w.grad
    (tensor([2.]), None)
    >>> rest.run()
    >>> w.grad
    tensor([3.])
    """
    pairs = [(t, g) for t, g in zip(outputs, grads, strict=True) if t.requires_grad]
    rest = WeightHalf()
    if not inputs:
        rest.edges, rest.grads = [t for t, _ in pairs], _given(pairs)
        return [], rest
    order = _nodes([edge_of(t) for t, _ in pairs])
    leading = _leading(order, {id(edge_of(x)) for x in inputs})
    for t, g in zip([t for t, _ in pairs], _given(pairs), strict=True):
        edge = edge_of(t)
        if not _leads(edge, leading, inputs):
            rest.edges.append(t)
            rest.grads.append(g)
    shared = [n for n in order if id(n) in leading and any(_to_weights(e, leading, inputs) for e in n.edges)]
    handles: list[Any] = []
    kept: list[tuple[Any, list[Any]]] = []  # nodes that run again, and the gradients that came to them
    node: Any
    for node in shared:
        wide = getattr(node, "recipe", None)
        if wide is None:
            handles.append(node.register_hook(_keeping(node, leading, inputs, rest)))
            continue
        came: list[Any] = []
        handles.append(node.register_prehook(came.extend))
        kept.append((node, came))
        node.recipe = Narrow(wide, _mask(node, wide.mask, leading, inputs, True))
        rest._restored.append((node, wide))
    roots = [(t, g) for t, g in zip([t for t, _ in pairs], _given(pairs), strict=True)
             if _leads(edge_of(t), leading, inputs)]  # fmt: skip
    found: tuple[Any, ...] = (None,) * len(inputs)
    try:
        if roots:
            found = grad([t for t, _ in roots], inputs, [g for _, g in roots], retain_graph=True, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
        for node, wide in rest._restored:
            node.recipe = wide
    again = {id(node) for node in shared}
    for node in order:
        if id(node) in leading and id(node) not in again:
            node.release()
    for node, came in kept:
        wide = node.recipe
        node.recipe = Narrow(wide, _mask(node, wide.mask, leading, inputs, False))
        # What watches gradients here has seen them.
        node.tensor_hooks = node.retained = node.pre_hooks = node.post_hooks = None
        for nr, g in enumerate(came):
            if g is not None:
                rest.edges.append(GradientEdge(node, nr))
                rest.grads.append(g)
    rest._restored.clear()
    return list(found), rest


def _given(pairs: Sequence[tuple[Tensor, Tensor | None]]) -> list[Tensor]:
    return [t.detach().new_ones(t.shape) if g is None else g for t, g in pairs]


def _nodes(roots: Sequence[Any]) -> list[BaseNode]:
    """All nodes behind some edges, the oldest first."""
    seen: dict[int, BaseNode] = {}
    stack = [e.node for e in roots if isinstance(e, (BaseNode, Edge))]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(e.node for e in node.edges if isinstance(e, (BaseNode, Edge)))
    return sorted(seen.values(), key=lambda n: n.seq)


def _leading(order: Sequence[BaseNode], targets: set[int]) -> set[int]:
    """Nodes on a path to one of the targets."""
    found: set[int] = set()
    for node in order:
        for e in node.edges:
            key = id(e.node) if isinstance(e, (BaseNode, Edge)) else id(e)
            if e is not None and (key in targets or key in found):
                found.add(id(node))
                break
    return found


def _leads(edge: Any, leading: set[int], inputs: Sequence[Tensor]) -> bool:
    if isinstance(edge, (BaseNode, Edge)):
        return id(edge.node) in leading
    return any(edge is x for x in inputs)


def _to_weights(edge: Any, leading: set[int], inputs: Sequence[Tensor]) -> bool:
    return edge is not None and not _leads(edge, leading, inputs)


def _mask(
    node: Any, mask: Sequence[bool], leading: set[int], inputs: Sequence[Tensor], forwards: bool
) -> tuple[bool, ...]:
    """Of the gradients that a node gives, those that lead to inputs, or the others."""
    return tuple(
        m and e is not None and _leads(e, leading, inputs) == forwards for m, e in zip(mask, node.edges, strict=True)
    )


def _keeping(node: Any, leading: set[int], inputs: Sequence[Tensor], rest: WeightHalf) -> Any:
    def keep(results: tuple[Any, ...], grads: tuple[Any, ...]) -> None:
        for e, g in zip(node.edges, results, strict=True):
            if g is None or not _to_weights(e, leading, inputs):
                continue
            if isinstance(e, (BaseNode, Edge)):
                rest.edges.append(GradientEdge(e.node, e.nr))
            else:
                rest.edges.append(GradientEdge(accumulator(e), 0))
            rest.grads.append(g)

    return keep
