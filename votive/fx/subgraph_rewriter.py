"""Replacing every place in a graph that looks like a pattern."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from ..nn import Module
from .graph import Graph
from .graph_module import GraphModule, _copy_attr
from .node import Node, map_arg
from .tracer import symbolic_trace


class Match(NamedTuple):
    """A place that was found: the node that gives its result, and for each node of the pattern the one it met."""

    anchor: Node
    nodes_map: dict[Node, Node]


class ReplacedPatterns(NamedTuple):
    """The same, with the nodes that were put there."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern: Any) -> tuple[Graph, Any]:
    if isinstance(pattern, GraphModule):
        return pattern.graph, pattern
    if isinstance(pattern, Graph):
        return pattern, pattern.owning_module
    traced = symbolic_trace(pattern)
    return traced.graph, traced


def _same(p: Any, g: Any, found: dict[Node, Node]) -> bool:
    """Whether arguments of a node are those of the pattern; notes which node meets which."""
    if isinstance(p, Node):
        return isinstance(g, Node) and _matches(p, g, found) if p.op != "placeholder" else _free(p, g, found)
    if isinstance(p, (tuple, list)):
        return isinstance(g, (tuple, list)) and len(p) == len(g) and all(map(lambda a, b: _same(a, b, found), p, g))
    if isinstance(p, dict):
        return isinstance(g, dict) and p.keys() == g.keys() and all(_same(p[k], g[k], found) for k in p)
    if isinstance(p, slice):
        return isinstance(g, slice) and _same([p.start, p.stop, p.step], [g.start, g.stop, g.step], found)
    return type(p) is type(g) and bool(p == g)


def _free(p: Node, g: Any, found: dict[Node, Any]) -> bool:
    """A parameter of the pattern meets anything, but always the same."""
    if p in found:
        return found[p] is g or (not isinstance(g, Node) and found[p] == g)
    found[p] = g
    return True


def _matches(p: Node, g: Node, found: dict[Node, Node]) -> bool:
    if p in found:
        return found[p] is g
    if p.op != g.op or (p.target != g.target and p.op != "call_module"):
        return False
    if p.op == "call_module" and not _same_module(p, g):
        return False
    if p.op == "get_attr" and p.target != g.target:
        return False
    before = dict(found)
    found[p] = g
    if _same(p.args, g.args, found) and _same(p.kwargs, g.kwargs, found):
        return True
    found.clear()
    found.update(before)
    return False


def _same_module(p: Node, g: Node) -> bool:
    if p.target == g.target:
        return True
    a, b = p.graph.owning_module, g.graph.owning_module
    return a is not None and b is not None and type(a.get_submodule(p.target)) is type(b.get_submodule(g.target))


def _closed(found: dict[Node, Any], outputs: list[Node]) -> bool:
    """Whether what lies inside a place is used nowhere else."""
    inside = {g for p, g in found.items() if p.op not in ("placeholder",) and isinstance(g, Node)}
    results = {found[p] for p in outputs}
    return all(user in inside for g in inside - results if g.op != "get_attr" for user in g.users)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule | Graph,
    replacement: Callable[..., Any] | GraphModule | Graph,
) -> list[Match]:
    """Put `replacement` wherever the graph does what `pattern` does; both take the same parameters.

    >>> traced = votive.fx.symbolic_trace(lambda x: votive.relu(x) + 1)
    >>> found = votive.fx.replace_pattern(traced, lambda x: votive.relu(x), lambda x: votive.sigmoid(x))
    >>> traced(votive.zeros(1))
    tensor([1.5000])
    """
    return [Match(m.anchor, m.nodes_map) for m in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[[Any, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
) -> list[ReplacedPatterns]:
    """`replace_pattern` for the places that all filters (match, graph, pattern) accept."""
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters: literals of the pattern are always compared.")
    wanted, _ = _graph_of(pattern)
    new, owner = _graph_of(replacement)
    results = wanted.output_node().args[0]
    outputs: list[Node] = []
    map_arg(results, lambda n: outputs.append(n) or n)  # type: ignore[func-returns-value]
    done: list[ReplacedPatterns] = []
    taken: set[Node] = set()
    for node in list(gm.graph.nodes):
        found: dict[Node, Any] = {}
        if node._erased or not outputs or not _all_outputs(outputs, node, gm.graph, found):
            continue
        inside = {g for p, g in found.items() if p.op != "placeholder" and isinstance(g, Node)}
        if inside & taken or not _closed(found, outputs):
            continue
        match = Match(node, found)
        if not all(f(match, gm.graph, wanted) for f in match_filters or ()):
            continue
        taken |= inside
        done.append(_replaced(gm, match, wanted, new, owner, outputs))
    gm.recompile()
    if isinstance(owner, Module):
        gm.graph.lint()
    return done


def _all_outputs(outputs: list[Node], node: Node, graph: Graph, found: dict[Node, Any]) -> bool:
    """Whether the first result of the pattern is this node, and the others are somewhere."""
    if not _matches(outputs[0], node, found):
        return False
    for p in outputs[1:]:
        if p in found:
            continue
        if not any(_matches(p, g, found) for g in graph.nodes):
            return False
    return True


def _replaced(
    gm: GraphModule, match: Match, wanted: Graph, new: Graph, owner: Any, outputs: list[Node]
) -> ReplacedPatterns:
    parameters = [n for n in wanted.nodes if n.op == "placeholder"]
    given = [n for n in new.nodes if n.op == "placeholder"]
    if len(parameters) != len(given):
        raise RuntimeError(f"The pattern takes {len(parameters)} parameters, its replacement {len(given)}.")
    values: dict[Node, Any] = {new_p: match.nodes_map[p] for p, new_p in zip(parameters, given, strict=True)}
    for n in new.nodes:
        if n.op in ("call_module", "get_attr") and owner is not None and not _has(gm, n.target):
            _copy_attr(owner, gm, n.target)
    old = [match.nodes_map[p] for p in outputs]
    last = max([g for p, g in match.nodes_map.items() if isinstance(g, Node)], key=_position(gm.graph))
    with gm.graph.inserting_after(last):
        result = gm.graph.graph_copy(new, values)
    made: list[Node] = []
    map_arg(result, lambda n: made.append(n) or n)  # type: ignore[func-returns-value]
    added = [values[n] for n in new.nodes if n.op not in ("placeholder", "output")]
    for was, now in zip(old, made, strict=True):
        was.replace_all_uses_with(now, delete_user_cb=lambda user, added=added: user not in added)  # type: ignore[misc]
    dead = [g for p, g in match.nodes_map.items() if isinstance(g, Node) and p.op != "placeholder"]
    for g in sorted(dead, key=_position(gm.graph), reverse=True):
        if not g.users:
            gm.graph.erase_node(g)
    return ReplacedPatterns(match.anchor, copy.copy(match.nodes_map), added)


def _has(module: Any, target: str) -> bool:
    at = module
    for part in target.split("."):
        if not hasattr(at, part):
            return False
        at = getattr(at, part)
    return True


def _position(graph: Graph) -> Callable[[Node], int]:
    order = {n: i for i, n in enumerate(graph.nodes)}
    return lambda n: order[n]
