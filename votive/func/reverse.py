"""Reverse mode inside transformations: inputs with a place of their own in the graph, and gradients by them.

There is one graph, of the tensors at the bottom. What is wrapped is taken apart level by level: batches become a
dimension, since examples do not depend on each other; the gradient of a tangent is the tangent of the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import engine
from ..autograd.graph import BaseNode, Edge
from ..autograd.views import edge_of
from ..core.mode import mode
from ..ops.registry import F
from .wrapped import Batched, bury, bury_dual, expose, lift, parts


def fresh(x: Any) -> Any:
    """The same values with a place of their own in the graph, for every example of the batches that run. What they
    came from stays connected, for those who differentiate again.
    """
    for level in mode.levels:
        if level.size is not None:
            x = lift(x, level)
    return _fresh(x)


def _fresh(x: Any) -> Any:
    if x._level:
        inner = x._inner()
        return x._like(_fresh(inner[0]), *inner[1:])
    if x._rg:
        with_grad, mode.grad = mode.grad, True
        try:
            return F._view(x, x._spec.shape)
        finally:
            mode.grad = with_grad
    return x.detach().requires_grad_()


def bottom(x: Any) -> Any:
    """The tensor without wrappers whose place in the graph counts."""
    while x._level:
        x = x._value
    return x


def leaves_of(xs: Sequence[Any]) -> set[int]:
    """What identifies the leaves among fresh inputs."""
    return {id(bottom(x)) for x in xs}


def _reaches_others(roots: list[Any], own: set[int]) -> bool:
    """Whether a graph leads to leaves that are not our own."""
    stack = [e for e in roots if e is not None]
    seen: set[int] = set()
    while stack:
        e = stack.pop()
        if not isinstance(e, (BaseNode, Edge)):
            if id(e) not in own:
                return True
            continue
        node = e.node
        if id(node) not in seen:
            seen.add(id(node))
            stack.extend(edge for edge in node.edges if edge is not None)
    return False


def settle(t: Any, own: set[int], outer: bool) -> Any:
    """A result for the outside: without its history, unless that leads to what others differentiate by."""
    if not t._rg:
        return t
    return t if outer and _reaches_others(_edges(t), own) else t.detach()


def _edges(t: Any) -> list[Any]:
    if t._level:
        return [e for inner in t._inner() for e in _edges(inner)]
    return [edge_of(t)]


def needs_graph(ys: Sequence[Any], xs: Sequence[Any]) -> bool:
    """Whether somebody else may differentiate what is computed from `ys`."""
    own = leaves_of(xs)
    return any(_reaches_others(_edges(y), own) for y in ys)


def pull(ys: Sequence[Any], xs: Sequence[Any], vs: Sequence[Any], create_graph: bool, retain: bool = True) -> list[Any]:
    """`J^T v`: gradients of `ys`, weighted by `vs`, by fresh inputs; None where there is no connection."""
    level = max((t._level for t in (*ys, *xs)), default=0)
    if level == 0:
        return _engine(ys, xs, vs, create_graph, retain)
    kinds = {t.__class__ for t in (*ys, *xs) if t._level == level}
    if Batched in kinds:
        return _pull_batched(ys, xs, vs, level, create_graph, retain)
    y_parts = [parts(y, level) for y in ys]
    v_parts = [parts(v, level) for v in vs]
    values = [parts(x, level)[0] for x in xs]
    value = pull([p for p, _ in y_parts], values, [p for p, _ in v_parts], create_graph, True)
    # The tangent of J(x)^T v: by v's own tangent, and by that of x, through the tangent of y.
    pairs = [(p, t) for (p, _), (_, t) in zip(y_parts, v_parts, strict=True) if t is not None]
    pairs += [(t, p) for (_, t), (p, _) in zip(y_parts, v_parts, strict=True) if t is not None]
    tangent = pull([y for y, _ in pairs], values, [v for _, v in pairs], create_graph, retain)
    return [
        None if v_ is None and t_ is None else bury_dual(F.zeros_like(x) if v_ is None else v_, t_, level)
        for v_, t_, x in zip(value, tangent, values, strict=True)
    ]


def _pull_batched(
    ys: Sequence[Any], xs: Sequence[Any], vs: Sequence[Any], level: int, create_graph: bool, retain: bool
) -> list[Any]:
    size = next(t._value.shape[t._bdim] for t in (*ys, *xs) if t._level == level)
    for x in xs:
        if x._level < level:
            raise RuntimeError(
                "grad: inside vmap, one of the differentiated tensors is not batched, so that it has no gradient per "
                "example; use votive.func.grad inside vmap, or autograd.grad outside of it."
            )
    flat_ys, flat_vs = ([expose(t, level, size) for t in ts] for ts in (ys, vs))
    # The value itself, not a view of it, is what the graph knows.
    grads = pull(flat_ys, [x._value for x in xs], flat_vs, create_graph, retain)
    return [None if g is None else bury(g, x._bdim, level) for g, x in zip(grads, xs, strict=True)]


def _engine(ys: Sequence[Any], xs: Sequence[Any], vs: Sequence[Any], create_graph: bool, retain: bool) -> list[Any]:
    used = [(y, v) for y, v in zip(ys, vs, strict=True) if y._rg]
    if not used:
        return [None] * len(xs)
    known = [x for x in xs if x._rg]
    grads = iter(
        engine.grad(
            [y for y, _ in used],
            known,
            [v for _, v in used],
            retain_graph=True if retain else None,
            create_graph=create_graph,
            allow_unused=True,
        )
    )
    return [next(grads) if x._rg else None for x in xs]
