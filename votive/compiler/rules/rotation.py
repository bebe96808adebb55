"""Rotary positions that a program writes out: `x * cos + rotate_half(x) * sin`."""

from __future__ import annotations

from typing import Any

from ..graph import Node, Value
from .table import Match, rule


def half_of(m: Match, v: object) -> tuple[Value, int, Node] | None:
    """The value whose first (0) or second (1) half along the last dimension a view shows."""
    view = m.made_by(v, "_slice", "_window")
    if view is None:
        return None
    x = view.args[0]
    width = x.spec.shape[-1] if x.spec.ndim else 0
    if view.op.name == "_slice":
        dim, start, end = view.args[1:4]
        if dim % max(x.spec.ndim, 1) != x.spec.ndim - 1 or view.args[4] != 1:
            return None
    else:
        index = view.args[1]
        rest = index[:-1]
        whole = all(i.__class__ is tuple and i == (0, n, 1) for i, n in zip(rest, x.spec.shape, strict=False))
        if len(index) != x.spec.ndim or not whole or index[-1].__class__ is not tuple or index[-1][2] != 1:
            return None
        start, end = index[-1][:2]
    for k in range(2):
        if width % 2 == 0 and (start, end) == (k * width // 2, (k + 1) * width // 2):
            return x, k, view
    return None


def doubled(m: Match, v: object) -> bool:
    """Whether the two halves of a value along its last dimension are known to be equal."""
    if v.__class__ is not Value or v.node is None or v.root in m.written or v.node not in m.order:
        return False
    node = v.node
    if node.op.name == "cat":
        parts, dim = node.args[0], node.args[1]
        return len(parts) == 2 and parts[0] is parts[1] and dim % v.spec.ndim == v.spec.ndim - 1
    if node.form != "call" or node.draw is not None:
        return False
    if node.is_view or node.op.name == "_copy_as":
        # Whole rows stay whole rows, side by side as they were.
        x = node.args[0]
        rows = x.spec.ndim > 0 and x.spec.shape[-1] == v.spec.shape[-1]
        return rows and (not node.is_view or x.spec.strides[-1] == v.spec.strides[-1]) and doubled(m, x)
    if node.op.kind != "pointwise":
        return False
    found = [x for x in node.reads() if x.spec.ndim and x.spec.shape[-1] != 1]
    return bool(found) and all(doubled(m, x) for x in found)


@rule("rotary positions", "add", wants="_rope")
def rope(m: Match, total: Node) -> bool:
    if not m.plain(total) or total.args[2] != 1:
        return False
    plain, turned = (m.made_by(a, "mul") for a in total.args[:2])
    if plain is None or turned is None:
        return False
    for first, second in ((plain, turned), (turned, plain)):
        for pair in (second.args[:2], second.args[1::-1]):
            found = _rotated_half(m, pair[0])
            if found is None:
                continue
            x, nodes = found
            if x not in first.args[:2]:
                continue
            cos = first.args[1] if first.args[0] is x else first.args[0]
            return _rewrite(m, total, x, cos, pair[1], [first, second, *nodes])
    return False


def _rotated_half(m: Match, v: Any) -> tuple[Value, list[Node]] | None:
    """`cat(-second half, first half)`: of what, and the calls."""
    joined = m.made_by(v, "cat")
    if joined is None or len(joined.args[0]) != 2 or joined.args[1] % v.spec.ndim != v.spec.ndim - 1:
        return None
    minus = m.made_by(joined.args[0][0], "neg")
    if minus is None:
        return None
    first, second = half_of(m, joined.args[0][1]), half_of(m, minus.args[0])
    if first is None or second is None or first[0] is not second[0] or (first[1], second[1]) != (0, 1):
        return None
    return first[0], [joined, minus, first[2], second[2]]


def _rewrite(m: Match, total: Node, x: Value, cos: Any, sin: Any, nodes: list[Node]) -> bool:
    nodes = list(dict.fromkeys([*nodes, total]))
    if not doubled(m, cos) or not doubled(m, sin) or not m.inner(nodes, total):
        return False
    if total.outs[0].spec.dtype is not x.spec.dtype or cos.spec.shape != sin.spec.shape or cos.spec.ndim < 2:
        return False
    width = x.spec.shape[-1]
    if cos.spec.shape[-1] != width or cos.spec.shape[-2] not in (x.spec.shape[-2],):
        return False
    halves = [_half(m, t, total) for t in (cos, sin)]
    tables = [n.outs[0] for n in halves]
    if not m.served("_rope", x, *tables, 0, False):
        return False
    made = m.make("_rope", (x, *tables, 0, False), (total.outs[0],), total)
    m.replace(nodes, [*[n for n in halves if n not in m.order], made], total)
    return True


def _half(m: Match, table: Value, like: Node) -> Node:
    """A view of the first half of a table; the same one for all who ask."""
    known = m.shared.get(("half", table))
    if known is not None and known.node is not None and known.node in m.order:
        return known.node
    made = m.make("_slice", (table, table.spec.ndim - 1, 0, table.spec.shape[-1] // 2, 1), (None,), like)
    m.shared["half", table] = made.outs[0]
    return made
