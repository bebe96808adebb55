"""Rewrites: patterns of calls that one operator does better. A row of the table gets the graph of a forward pass, and
any program gets what it finds.

Backward passes need no rules: the rewritten program is run once more, and autograd's rules of the joined operators
give theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...backends.base import OWN, has_own
from ...dispatch import kernel_for
from ...ops.registry import OPS
from ..graph import Graph, Node, Value, addresses_of
from ..unsized import plain_specs


class Match:
    """A graph as rules look at it: who makes and who uses a value."""

    def __init__(self, graph: Graph, gradients: bool) -> None:
        self.graph, self.gradients = graph, gradients
        self.shared: dict[Any, Value] = {}  # what rules have made for all their matches
        self.refresh()

    def refresh(self) -> None:
        self.users = self.graph.users()
        self.written = self.graph.written()
        self.order = {n: i for i, n in enumerate(self.graph.nodes)}
        self.outputs = set(self.graph.outputs)
        self.shown = {v.base for n in self.graph.nodes for v in n.outs if v.base is not None}

    # --- looking ---------------------------------------------------------------------------------

    def made_by(self, v: object, *ops: str) -> Node | None:
        """The call that makes a value, if it is one of these operators and nothing is written in place there."""
        if v.__class__ is not Value or v.node is None or v.node.op.name not in ops or v.node not in self.order:
            return None
        return v.node if v not in self.graph.kept and self.plain(v.node) else None

    def plain(self, node: Node) -> bool:
        """Whether a call just computes, from and to memory that nobody changes."""
        if self.gradients and (node.cut or not node.grad):
            return False  # its results have other gradients than those of what it reads
        touched = (*node.reads(), *node.outs)
        return node.form == "call" and node.draw is None and not any(v.root in self.written for v in touched)

    def only_user(self, v: Value, node: Node) -> bool:
        """Whether nobody but `node` looks at a value, and the program does not return it."""
        return self.users.get(v, []) == [node] and v not in self.outputs

    def user(self, v: Value, *ops: str) -> Node | None:
        """The one call that looks at a value, if it is one of these operators."""
        found = self.users.get(v, [])
        if len(found) != 1 or v in self.outputs or found[0].op.name not in ops or not self.plain(found[0]):
            return None
        return found[0]

    def unused(self, v: Value) -> bool:
        return not self.users.get(v) and v not in self.outputs

    def inner(self, nodes: list[Node], last: Node) -> bool:
        """Whether what these calls make is used by them alone, but for the results of the last."""
        members = set(nodes)
        made = [v for n in nodes if n is not last for v in n.outs]
        return all(v not in self.outputs and all(u in members for u in self.users.get(v, ())) for v in made)

    def arg(self, node: Node, name: str) -> Any:
        return node.args[node.op.schema.names.index(name)]

    def served(self, op: str, *args: Any) -> bool:
        """Whether a kernel made for the device takes such a call."""
        row = kernel_for(OPS[op], plain_specs(tuple([_spec(a) for a in args])))
        return row is not None and row.label in OWN

    def specs(self, op: str, *args: Any) -> tuple[Any, ...]:
        """What a call would give."""
        infer: Any = OPS[op].infer
        canon: Any = OPS[op].canon
        given = tuple([_spec(a) for a in args])
        found = infer(*(given if canon is None else canon(*given)))
        if OPS[op].kind == "view":
            found = found[0]
        return found if isinstance(found, tuple) else (found,)

    # --- changing --------------------------------------------------------------------------------

    def make(self, op: str, args: tuple[Any, ...], outs: tuple[Value | None, ...], like: Node) -> Node:
        """A call in the name of another; None among its results stands for a new value."""
        specs = self.specs(op, *args)
        values = tuple([self.graph.value(s) if v is None else v for v, s in zip(outs, specs, strict=True)])
        single = OPS[op].n_out == 1
        made = Node(OPS[op], args, values, single=single, path=like.path, line=like.line, grad=like.grad)
        for i, (v, s) in enumerate(zip(values, specs, strict=True)):
            v.node, v.index, v.spec = made, i, s
            if OPS[op].kind == "view":
                v.base = next(made.reads()).root
        return made

    def replace(self, old: list[Node], new: list[Node], at: Node) -> None:
        """Put `new` where `at` stands in place of other calls."""
        nodes = self.graph.nodes
        place = nodes.index(at)
        gone = set(old)
        addresses = addresses_of(old)
        for n in new:
            if not n.is_view:
                n.paths = addresses
        before, after = nodes[:place], nodes[place + 1 :]
        self.graph.nodes = [n for n in before if n not in gone] + new + [n for n in after if n not in gone]
        self.refresh()


def _spec(a: object) -> Any:
    if a.__class__ is Value:
        return a.spec
    return tuple([_spec(x) for x in a]) if a.__class__ is tuple else a


@dataclass(frozen=True)
class Rule:
    """A row of the table: `apply(match, node)` rewrites around a call of one of `ops`, or says False."""

    name: str
    ops: tuple[str, ...]
    wants: str  # the operator that a device must have kernels of its own for
    apply: Callable[[Match, Node], bool]
    gradients: bool | None = None  # only with gradients, only without, or None for both


RULES: list[Rule] = []


Apply = Callable[[Match, Node], bool]


def rule(name: str, *ops: str, wants: str, gradients: bool | None = None) -> Callable[[Apply], Apply]:
    """Enter a rule."""

    def enter(fn: Apply) -> Apply:
        RULES.append(Rule(name, ops, wants, fn, gradients))
        return fn

    return enter


def apply_rules(graph: Graph, gradients: bool) -> dict[str, int]:
    """Rewrite by every rule in turn; how often each did."""
    match = Match(graph, gradients)
    counts: dict[str, int] = {}
    for r in RULES:
        if r.gradients is not None and r.gradients is not gradients:
            continue
        for node in _candidates(match, r):
            if r.apply(match, node):
                counts[r.name] = counts.get(r.name, 0) + 1
    return counts


def _candidates(match: Match, r: Rule) -> Iterator[Node]:
    for node in list(match.graph.nodes):
        if node.op.name in r.ops and node in match.order and node.form == "call" and node.outs:
            if has_own(r.wants, node.outs[0].spec.device.type):
                yield node
