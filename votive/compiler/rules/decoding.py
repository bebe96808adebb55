"""One token of a decoder: heads normed and rotated, kept among the others, and attention to all that are kept."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...ops.registry import OPS
from ..graph import Node, Value
from .table import Match, rule


def _through_views(m: Match, v: Any) -> Any:
    """The value whose numbers, in their order, views show; dimensions of size 1 do not count."""
    while v.__class__ is Value and v.node is not None and v.node.is_view and v.node.args[0].spec.numel == v.spec.numel:
        x = v.node.args[0]
        if [n for n in x.spec.shape if n != 1] != [n for n in v.spec.shape if n != 1]:
            break
        v = x
    return v


def _up_to(m: Match, mask: Any, length: int) -> Value | None:
    """The position up to which a mask lets keys through: `arange(length) <= position`."""
    v = _through_views(m, mask)
    node = m.made_by(v, "le", "ge")
    if node is None or v.spec.numel != length or mask.spec.shape[-1] != length or v.spec.dtype is not dt.bool_:
        return None
    places, position = node.args[:2] if node.op.name == "le" else node.args[1::-1]
    counted = m.made_by(_through_views(m, places), "_arange")
    position = _through_views(m, position)
    if counted is None or position.__class__ is not Value or position.spec.numel != 1:
        return None
    if counted.args[:3] != (0, 1, length) or position.spec.dtype is not dt.int64:
        return None
    return position


class _Heads:
    """Queries or keys: a part of a joined product, as heads, perhaps normed, turned to (batch, heads, 1, width)."""

    def __init__(self, joined: Value, start: int, heads: int, width: int) -> None:
        self.joined, self.start, self.heads, self.width = joined, start, heads, width
        self.norm: Value | None = None
        self.eps = 0.0
        self.cos: Any = None
        self.sin: Any = None
        self.nodes: list[Node] = []


def _heads(m: Match, v: Any, rotated: bool) -> _Heads | None:
    """How heads were made of a product of one token; None if otherwise."""
    nodes: list[Node] = []
    cos = sin = norm = None
    eps = 0.0
    if rotated:
        turn = m.made_by(v, "_rope")
        if turn is None or turn.args[3] != 0 or turn.args[4]:
            return None
        v, cos, sin = turn.args[:3]
        nodes.append(turn)
    swap = m.made_by(v, "transpose")
    if swap is None or v.spec.ndim != 4 or v.spec.shape[2] != 1 or {d % 4 for d in swap.args[1:3]} != {1, 2}:
        return None
    heads, width = v.spec.shape[1], v.spec.shape[3]
    nodes.append(swap)
    v = swap.args[0]
    if rotated:
        normed = m.made_by(v, "_rms_norm")
        if normed is not None:
            v, norm, dims, eps = normed.args
            if dims != 1 or norm is None:
                return None
            nodes.append(normed)
    view = m.made_by(v, "_view")
    if view is None or view.args[0].spec.ndim != 3 or view.args[0].spec.shape[1:] != (1, heads * width):
        return None
    part = m.made_by(view.args[0], "_slice")
    if part is None or part.args[1] % 3 != 2 or m.made_by(part.args[0], "_norm_linear") is None:
        return None
    found = _Heads(part.args[0], part.args[2], heads, width)
    found.norm, found.eps, found.cos, found.sin = norm, eps, cos, sin
    found.nodes = [*nodes, view, part]
    return found


def _kept(m: Match, cache: Value, reader: Node) -> tuple[Node, Value] | None:
    """The one call that writes into a cache before it is read: `index_copy_(2, position, source)`."""
    if cache.node is not None or cache.base is not None or cache.spec.ndim != 4 or cache in m.shown:
        return None
    writers = [n for n in m.users.get(cache, ()) if n is not reader]
    if len(writers) != 1:
        return None
    write = writers[0]
    if write.op.name != "index_copy" or write.form != "write" or write.args[0] is not cache:
        return None
    if write.args[1] % 4 != 2 or m.order[write] > m.order[reader]:
        return None
    return write, write.args[2]


@rule("rotation, cache and attention", "_attention", wants="_rotate_and_attend", gradients=False)
def rotate_and_attend(m: Match, node: Node) -> bool:
    q, keys, values, mask = node.args[:4]
    rest = dict(zip(node.op.schema.names[4:], node.args[4:], strict=True))
    if node.draw is not None or rest["dropout_p"] or rest["is_causal"] or not m.unused(node.outs[1]):
        return False
    if mask.__class__ is not Value or keys.spec.ndim != 4 or keys is values:
        return False
    batch, shared, length, width = keys.spec.shape
    kept_keys, kept_values = _kept(m, keys, node), _kept(m, values, node)
    position = _up_to(m, mask, length)
    if kept_keys is None or kept_values is None or position is None:
        return False
    if any(_through_views(m, at) is not position for _, at in (kept_keys, kept_values)):
        return False
    turned, new_keys, new_values = (
        _heads(m, q, True),
        _heads(m, kept_keys[0].args[3], True),
        _heads(m, kept_values[0].args[3], False),
    )
    if turned is None or new_keys is None or new_values is None:
        return False
    parts = (turned, new_keys, new_values)
    heads = turned.heads
    starts = (0, heads * width, (heads + shared) * width)
    if len({p.joined for p in parts}) != 1 or tuple(p.start for p in parts) != starts:
        return False
    if {p.width for p in parts} != {width} or (new_keys.heads, new_values.heads) != (shared, shared):
        return False
    if (turned.norm is None) != (new_keys.norm is None) or turned.eps != new_keys.eps:
        return False
    tables = [_through_views(m, t) for t in (turned.cos, turned.sin)]
    if any(t is not _through_views(m, u) for t, u in zip(tables, (new_keys.cos, new_keys.sin), strict=True)):
        return False
    if any(t.spec.numel != t.spec.shape[-1] for t in tables):
        return False
    scale = width**-0.5 if rest["scale"] is None else rest["scale"]
    counts = _counters(m, batch * shared, node)
    views = []
    for i, t in enumerate(tables):
        if t.spec.ndim != 2:  # a row of each, whatever it was broadcast from
            views.append(m.make("_view", (t, (1, t.spec.shape[-1])), (None,), node))
            tables[i] = views[-1].outs[0]
    args = (
        turned.joined,
        turned.norm,
        new_keys.norm,
        turned.eps,
        *tables,
        keys,
        values,
        position,
        counts.outs[0],
        heads,
        scale,
    )
    nodes = [*turned.nodes, *new_keys.nodes, *new_values.nodes]
    if not m.served("_rotate_and_attend", *args):
        return False
    made = m.make("_rotate_and_attend", args, (None,), node)
    apart = m.make("_view", (made.outs[0], (batch, 1, heads, width)), (None,), node)
    swap = m.make("transpose", (apart.outs[0], 1, 2), (node.outs[0],), node)
    if counts not in m.order:
        m.graph.nodes.insert(0, counts)
    gone = {kept_keys[0], kept_values[0], node}
    for n in sorted(nodes, key=m.order.__getitem__, reverse=True):
        if all(u in gone for v in n.outs for u in m.users.get(v, ())) and not m.outputs.intersection(n.outs):
            gone.add(n)
    m.replace(list(gone), [*views, made, apart, swap], node)
    return True


def _counters(m: Match, n: int, like: Node) -> Node:
    """Zeros that the kernel counts with and leaves as zeros: the same for all layers."""
    known = m.shared.get(("counters", n))
    if known is not None and known.node is not None:
        return known.node
    args = ((n,), (1,), 0, dt.int32, like.outs[0].spec.device)
    spec = m.specs("_full", *args)[0]
    made = Node(OPS["_full"], args, (m.graph.value(spec),))
    made.outs[0].node = made
    m.shared["counters", n] = made.outs[0]
    return made
