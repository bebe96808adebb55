"""Norms that a program writes out of single operators."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ..graph import Node, Value
from .table import Match, rule


def _uncast(m: Match, v: Any) -> tuple[Value, Node | None]:
    """What a value was before it was widened, and the cast."""
    cast = m.made_by(v, "_copy_as")
    if cast is None or cast.args[0].spec.dtype not in dt.HALF or cast.args[1] is not dt.float32:
        return v, None
    return cast.args[0], cast


def _square(m: Match, v: object) -> tuple[Value, Node] | None:
    """Whose square a value is."""
    node = m.made_by(v, "_pow_number", "square", "mul")
    if node is None or node.args[0].__class__ is not Value:
        return None
    if node.op.name == "_pow_number" and node.args[1] != 2:
        return None
    if node.op.name == "mul" and node.args[0] is not node.args[1]:
        return None
    return node.args[0], node


def _scale(m: Match, v: object) -> tuple[Value, float, list[Node]] | None:
    """`rsqrt(mean(x * x) + eps)` over the last dimension: x, eps, the calls."""
    root = m.made_by(v, "rsqrt")
    if root is None:
        return None
    plus = m.made_by(root.args[0], "add")
    if plus is None or plus.args[1].__class__ is not float or plus.args[2] != 1:
        return None
    mean = m.made_by(plus.args[0], "mean")
    if mean is None or not m.arg(mean, "keepdim"):
        return None
    squared = _square(m, mean.args[0])
    if squared is None:
        return None
    x, square = squared
    dim = m.arg(mean, "dim")
    dim = tuple(dim) if dim.__class__ is list else dim
    last = x.spec.ndim - 1
    if x.spec.ndim == 0 or dim not in (-1, last, (-1,), (last,)) or mean.outs[0].spec.dtype is not x.spec.dtype:
        return None
    return x, plus.args[1], [square, mean, plus, root]


def _factor(m: Match, node: Node | None, v: Value) -> Value | None:
    """What else `v` is multiplied with: a row of weights."""
    if node is None:
        return None
    w = node.args[1] if node.args[0] is v else node.args[0]
    if w.__class__ is not Value or w is v or w.spec.shape != v.spec.shape[-1:]:
        return None
    return w


@rule("rms norm", "mul", wants="_rms_norm")
def rms_norm(m: Match, node: Node) -> bool:
    """`x * rsqrt(mean(x * x) + eps)`, and the weight behind it; in a wider type between, if casts say so."""
    if not m.plain(node):
        return False
    for h, r in (node.args, node.args[::-1]):
        found = _scale(m, r)
        if found is not None and h.__class__ is Value and h is not r:
            break
    else:
        return False
    y, eps, nodes = found
    x, cast = _uncast(m, h)
    if _uncast(m, y)[0] is not x or not x.spec.dtype.is_floating_point:
        return False
    nodes += [n for n in (cast, _uncast(m, y)[1]) if n is not None]
    weight, last = None, node
    out = node.outs[0]
    kind = x.spec.dtype
    if cast is not None:  # back to fewer digits: before the weight, or behind it
        back = m.user(out, "_copy_as")
        if back is not None and back.args[1] is kind:
            nodes, last = [*nodes, node], back
        else:
            times = m.user(out, "mul")
            w = _factor(m, times, out)
            if times is None or w is None or times.outs[0].spec.dtype is not dt.float32:
                return False
            back = m.user(times.outs[0], "_copy_as")
            if back is None or back.args[1] is not kind:
                return False
            weight, wide = _uncast(m, w)
            nodes += [node, times]
            if wide is not None and m.only_user(w, times):
                nodes.append(wide)
            last = back
        out = last.outs[0]
    if weight is None:
        times = m.user(out, "mul")
        w = _factor(m, times, out)
        if times is not None and w is not None and times.outs[0].spec.dtype is kind and w.spec.dtype is kind:
            nodes, last, weight = [*nodes, last], times, w
    nodes = list(dict.fromkeys([*nodes, last]))
    # The widened input may serve others, too.
    inner = [n for n in nodes if n is not cast and n is not _uncast(m, y)[1]]
    if not m.inner(inner, last) or not m.served("_rms_norm", x, weight, 1, eps):
        return False
    made = m.make("_rms_norm", (x, weight, 1, eps), (last.outs[0], None), last)
    m.replace(inner, [made], last)
    return True
