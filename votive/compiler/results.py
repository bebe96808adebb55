"""How a program's results are taken from the inputs and outputs of its graph. Knows views, not how they are run."""

from __future__ import annotations

from typing import Any

from ..core.mode import mode
from ..dispatch import state
from .entry import Recipe, chain
from .graph import Value
from .trace import Tracer, Untraceable, place_of


def recipes_of(tracer: Tracer, found: list[Any]) -> tuple[list[Recipe], list[Any]]:
    """How results are taken from a graph's inputs and outputs, and the tensors that must be its outputs.

    Results that share memory are views, made outside, of one output; views of inputs are made of the inputs.
    """
    graph = tracer.graph
    values = [tracer.value_of(t) for t in found]
    roots = [v.root for v in values]
    outs: list[Any] = []
    places: dict[Value, int] = {}
    recipes: list[Recipe] = []
    given = {tracer.named[i]: t for i, (t, _) in tracer.outside.items() if i in tracer.named}
    for t, v, root in zip(found, values, roots, strict=True):
        start, views = chain(v)
        if type(t) is not state.tensor and (views or start.kind not in ("input", "held")):
            raise Untraceable(f"it returns a new {type(t).__name__}")
        if start.kind in ("input", "held"):
            recipes.append(Recipe(True, graph.inputs.index(start), views, _detached(t, given[start], views)))
        elif roots.count(root) == 1 and (v is root or not mode.grad):
            recipes.append(Recipe(False, len(outs)))
            outs.append(t)
        else:
            if root not in places:
                places[root] = len(outs)
                outs.append(_owner(tracer, found, values, root))
            if start is not root:
                raise Untraceable("it returns tensors that share memory without being views of each other")
            recipes.append(Recipe(False, places[root], views, _detached(t, outs[places[root]], views)))
    return recipes, outs


def _detached(t: Any, source: Any, views: tuple[Any, ...]) -> bool:
    """Whether autograd knows nothing of where a result comes from: another tensor on the same memory."""
    return not t._rg and bool(source._rg if views else t is not source)


def _owner(tracer: Tracer, found: list[Any], values: list[Value], root: Value) -> Any:
    """The tensor that shows all of a memory which several results share; one that has a gradient if any has."""
    same = [t for t, v in zip(found, values, strict=True) if v.root is root]
    owners = [t for t, v in zip(found, values, strict=True) if v is root]
    owners += [t._base for t in same if t._base is not None and tracer.value_of(t._base) is root]
    owners += [t for t, _ in tracer.alive if tracer.known.get(place_of(t)) is root]
    if not root.spec.layout.overlaps:  # a view that shows all of it
        owners += [t for t in same if t._spec is root.spec]
    owners.sort(key=lambda t: not t._rg)
    if not owners or (any(t._rg for t in same) and not owners[0]._rg):
        raise Untraceable("it returns tensors with gradients that share memory with others")
    return owners[0]
