"""Products and the activations behind them."""

from __future__ import annotations

from ...ops.matmul_activation import ACTIVATIONS
from ..graph import Node
from .table import Match, rule


def _activation(node: Node) -> str | None:
    for name, (op, given) in ACTIVATIONS.items():
        if node.op.name == op and tuple(node.args[1:]) == given:
            return name
    return None


@rule("feed-forward", "linear", wants="_feed_forward", gradients=True)
def feed_forward(m: Match, second: Node) -> bool:
    """`act(x @ a) @ b`: both steps and their gradients."""
    if not m.plain(second):
        return False
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
    if not m.served("_feed_forward", *args):
        return False
    made = m.make("_feed_forward", args, (second.outs[0], None, None), act)
    m.replace([first, act, second], [made], second)
    return True


@rule("product and activation", "relu", "gelu", "silu", wants="_linear_activated", gradients=False)
def linear_activated(m: Match, act: Node) -> bool:
    if not m.plain(act):
        return False
    name, before = _activation(act), act.args[0]
    product = m.made_by(before, "linear")
    if name is None or product is None or not m.only_user(before, act):
        return False
    args = (*product.args, name)
    if not m.served("_linear_activated", *args):
        return False
    made = m.make("_linear_activated", args, (act.outs[0],), product)
    m.replace([product, act], [made], act)
    return True
