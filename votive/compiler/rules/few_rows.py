"""Products of few rows: a launch costs more than its sums, so what stands before and behind a product joins it."""

from __future__ import annotations

from ...core import dtype as dt
from ..graph import Node, Value
from .table import Match, rule

# Half types are multiplied by tensor cores, for so many rows. Other sums are not: with more rows, or more to multiply
# than this in the widest product, the library's products are ahead.
_STREAMED, _ROWS, _WORK = 64, 8, 1 << 25
_EVEN = 16  # what sizes are multiples of, for tensor cores


def pays(x: Value, weights: list[Value]) -> bool:
    """Whether fewer launches save more than a library's faster sums of many rows would."""
    width = x.spec.shape[-1]
    rows = x.spec.numel // width if width else 0
    if rows <= _STREAMED and x.spec.dtype in dt.HALF and all(not n % _EVEN for w in weights for n in w.spec.shape):
        return True
    return rows == 1 or (0 < rows <= _ROWS and rows * max(w.spec.numel for w in weights) <= _WORK)


def _products(m: Match, v: Value) -> list[Node] | None:
    """The products that alone use a value, as their input."""
    users = m.users.get(v, [])
    if not users or v in m.outputs or v in m.shown:
        return None
    for n in users:
        if n.op.name != "linear" or not m.plain(n) or n.args[0] is not v or n.args[2] is not None:
            return None
        if n.args[1].spec.ndim != 2 or n.args[1] is v:
            return None
    return users


@rule("norm, gate and product", "_rms_norm", wants="_norm_linear", gradients=False)
def norm_gated(m: Match, norm: Node) -> bool:
    """`silu(norm(x) @ a) * (norm(x) @ b)`."""
    x, weight, dims, eps = norm.args
    products = _products(m, norm.outs[0])
    if not m.plain(norm) or products is None or len(products) != 2 or weight is None or dims != 1:
        return False
    for gate, up in (products, products[::-1]):
        act = m.user(gate.outs[0], "silu")
        both = None if act is None else m.user(act.outs[0], "mul")
        if act is None or both is None or both is not m.user(up.outs[0], "mul"):
            continue
        weights = (gate.args[1], up.args[1])
        if {*both.args[:2]} != {act.outs[0], up.outs[0]} or not m.unused(norm.outs[1]) or not pays(x, list(weights)):
            continue
        args = (x, weight, eps, weights, True)
        if both.outs[0].spec.dtype is not x.spec.dtype or not m.served("_norm_linear", *args):
            continue
        made = m.make("_norm_linear", args, (both.outs[0],), both)
        m.replace([norm, gate, up, act, both], [made], both)
        return True
    return False


@rule("norm and products", "_rms_norm", wants="_norm_linear", gradients=False)
def norm_linear(m: Match, norm: Node) -> bool:
    """Up to three products of a norm, side by side."""
    x, weight, dims, eps = norm.args
    products = _products(m, norm.outs[0])
    if not m.plain(norm) or products is None or len(products) > 3 or weight is None or dims != 1:
        return False
    products = sorted(products, key=m.order.__getitem__)
    weights = tuple([n.args[1] for n in products])
    args = (x, weight, eps, weights, False)
    if not m.unused(norm.outs[1]) or not pays(x, list(weights)) or not m.served("_norm_linear", *args):
        return False
    if any(w.node in m.order and m.order[w.node] > m.order[products[0]] for w in weights if w.node is not None):
        return False
    if len(products) == 1:
        made = m.make("_norm_linear", args, (products[0].outs[0],), products[0])
        m.replace([norm, products[0]], [made], products[0])
        return True
    made = m.make("_norm_linear", args, (None,), products[0])
    joined, parts, start = made.outs[0], [], 0
    for n in products:
        end = start + n.args[1].spec.shape[0]
        parts.append(m.make("_slice", (joined, joined.spec.ndim - 1, start, end, 1), (n.outs[0],), n))
        start = end
    m.replace([norm, *products], [made, *parts], products[0])
    return True


@rule("product and sum", "add", wants="_linear_add", gradients=False)
def linear_add(m: Match, total: Node) -> bool:
    """`residual + x @ w`."""
    if not m.plain(total) or total.args[2] != 1:
        return False
    for residual, v in (total.args[:2], total.args[1::-1]):
        product = m.made_by(v, "linear")
        if product is None or residual.__class__ is not Value or not m.only_user(v, total):
            continue
        x, weight, bias = product.args
        args = (x, weight, residual)
        if bias is not None or weight.spec.ndim != 2 or residual.spec.shape != v.spec.shape or not pays(x, [weight]):
            continue
        if total.outs[0].spec.dtype is not residual.spec.dtype or not m.served("_linear_add", *args):
            continue
        made = m.make("_linear_add", args, (total.outs[0],), product)
        m.replace([product, total], [made], total)
        return True
    return False
