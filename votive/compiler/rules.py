"""Rewrites: patterns of calls that one operator does better. A row of the table gets the graph of a forward pass, and any
program gets what it finds.

Backward passes need no rules: the rewritten program is run once more, and autograd's rules of the joined operators
give theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..backends.base import has_own
from ..core import dtype as dt
from ..core.promotion import promote_types
from ..ops.matmul_activation import ACTIVATIONS
from ..ops.registry import OPS
from .graph import Graph, Node, Value


class Match:
    """A graph as rules look at it: who makes and who uses a value."""

    def __init__(self, graph: Graph, gradients: bool) -> None:
        self.graph, self.gradients = graph, gradients
        self.refresh()

    def refresh(self) -> None:
        self.users = self.graph.users()
        self.written = self.graph.written()
        self.order = {n: i for i, n in enumerate(self.graph.nodes)}
        self.outputs = set(self.graph.outputs)

    def made_by(self, v: Any, *ops: str) -> Node | None:
        """The call that makes a value, if it is one of these operators and nothing is written in place there."""
        if v.__class__ is not Value or v.node is None or v.node.op.name not in ops or v.node not in self.order:
            return None
        return v.node if self.plain(v.node) else None

    def plain(self, node: Node) -> bool:
        touched = (*node.reads(), *node.outs)
        return node.form == "call" and node.draw is None and not any(v.root in self.written for v in touched)

    def only_user(self, v: Value, node: Node) -> bool:
        """Whether nobody but `node` looks at a value, and the program does not return it."""
        return self.users.get(v, []) == [node] and v not in self.outputs

    def unused(self, v: Value) -> bool:
        return not self.users.get(v) and v not in self.outputs

    def arg(self, node: Node, name: str) -> Any:
        return node.args[node.op.schema.names.index(name)]

    def replace(self, old: list[Node], new: Node, at: Node) -> None:
        """Put `new` where `at` stands in place of other calls."""
        nodes = self.graph.nodes
        nodes[nodes.index(at)] = new
        gone = {n for n in old if n is not at}
        self.graph.nodes = [n for n in nodes if n not in gone]
        for i, v in enumerate(new.outs):
            v.node, v.index = new, i
        self.refresh()


@dataclass(frozen=True)
class Rule:
    """A row of the table: `apply(match, node)` rewrites around a call of `op`, or says False."""

    name: str
    ops: tuple[str, ...]
    wants: str  # the operator that a device must have kernels of its own for
    apply: Callable[[Match, Node], bool]
    gradients: bool | None = None  # only with gradients, only without, or None for both


RULES: list[Rule] = []


def rule(name: str, *ops: str, wants: str, gradients: bool | None = None) -> Any:
    """Enter a rule."""

    def enter(fn: Callable[[Match, Node], bool]) -> Callable[[Match, Node], bool]:
        RULES.append(Rule(name, ops, wants, fn, gradients))
        return fn

    return enter


def apply_rules(graph: Graph, gradients: bool) -> dict[str, int]:
    """Rewrite until nothing matches; how often each rule did."""
    match = Match(graph, gradients)
    counts: dict[str, int] = {}
    for r in RULES:
        if r.gradients is not None and r.gradients is not gradients:
            continue
        for node in list(graph.nodes):
            if node.op.name not in r.ops or node not in match.order or not node.outs or not match.plain(node):
                continue
            if has_own(r.wants, node.outs[0].spec.device.type) and r.apply(match, node):
                counts[r.name] = counts.get(r.name, 0) + 1
    return counts


def _activation(node: Node) -> str | None:
    for name, (op, given) in ACTIVATIONS.items():
        if node.op.name == op and tuple(node.args[1:]) == given:
            return name
    return None


@rule("norm of a sum", "_layer_norm", "_rms_norm", wants="_add_norm")
def add_norm(m: Match, norm: Node) -> bool:
    total = m.arg(norm, "input")
    add = m.made_by(total, "add")
    if add is None or add.args[2] != 1 or not all(a.__class__ is Value for a in add.args[:2]):
        return False
    x, delta = add.args[:2]
    names = norm.op.schema.names
    weight = m.arg(norm, "weight")
    bias = m.arg(norm, "bias") if "bias" in names else None
    dims, eps = norm.args[-2:]
    kinds = {p.spec.dtype for p in (weight, bias) if p is not None}
    kind = promote_types(x.spec.dtype, delta.spec.dtype)
    fits = kinds <= {kind} or (kind in dt.HALF and kinds <= {dt.float32})
    shape = total.spec.shape[total.spec.ndim - dims :] if dims.__class__ is int else None
    if shape is None or x.spec.shape != delta.spec.shape or not kind.is_floating_point or not fits:
        return False
    if any(p is not None and p.spec.shape != shape for p in (weight, bias)):
        return False
    if any(not m.unused(v) for v in norm.outs[1:]):
        return False
    first = m.order[add]
    if any(p is not None and p.node in m.order and m.order[p.node] > first for p in (weight, bias)):
        return False
    normed, out, gone = norm.outs[0], None, [add, norm]
    casts = [n for n in m.users.get(normed, ()) if n.op.name == "_copy_as"]
    if casts and normed not in m.outputs and len(casts) == len(m.users[normed]) == 1:
        cast = casts[0]
        if cast.args[1] in dt.HALF and cast.outs[0].spec.strides == normed.spec.strides:
            normed, out = cast.outs[0], cast.args[1]
            gone.append(cast)
    rest = [m.graph.value(s) for s in _specs("_add_norm", x, delta, weight, bias, dims, eps, True, out)[2:]]
    centre = norm.op.name == "_layer_norm"
    args = (x, delta, weight, bias, dims, eps, centre, out)
    made = Node(OPS["_add_norm"], args, (normed, total, *rest), single=False, path=norm.path, line=norm.line)
    m.replace(gone, made, add)
    return True


def _specs(op: str, *args: Any) -> tuple[Any, ...]:
    infer: Any = OPS[op].infer
    found = infer(*[a.spec if a.__class__ is Value else a for a in args])
    return found if isinstance(found, tuple) else (found,)


@rule("feed-forward", "linear", wants="_feed_forward", gradients=True)
def feed_forward(m: Match, second: Node) -> bool:
    hidden, w2, b2 = second.args
    act = m.made_by(hidden, "relu", "gelu", "silu")
    name = None if act is None else _activation(act)
    if act is None or name is None or not m.only_user(hidden, second):
        return False
    before = act.args[0]
    first = m.made_by(before, "linear")
    if first is None or not m.only_user(before, act):
        return False
    x, w1, b1 = first.args
    if w1.spec.ndim != 2 or w2.spec.ndim != 2 or {w1.spec.dtype, w2.spec.dtype} != {x.spec.dtype}:
        return False
    args = (x, w1, b1, w2, b2, name)
    rest = [m.graph.value(s) for s in _specs("_feed_forward", *args)[1:]]
    made = Node(OPS["_feed_forward"], args, (second.outs[0], *rest), single=False, path=act.path, line=act.line)
    m.replace([first, act, second], made, second)
    return True


@rule("linear and activation", "relu", "gelu", "silu", wants="_linear_activated", gradients=False)
def linear_activated(m: Match, act: Node) -> bool:
    name, before = _activation(act), act.args[0]
    product = m.made_by(before, "linear")
    if name is None or product is None or not m.only_user(before, act):
        return False
    made = Node(OPS["_linear_activated"], (*product.args, name), act.outs, path=product.path, line=product.line)
    m.replace([product, act], made, act)
    return True
