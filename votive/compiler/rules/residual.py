"""A residual stream: the sum and the norm behind it as one pass."""

from __future__ import annotations

from ...core import dtype as dt
from ...core.promotion import promote_types
from ..graph import Node, Value
from .table import Match, rule


@rule("norm of a sum", "_layer_norm", "_rms_norm", wants="_add_norm")
def add_norm(m: Match, norm: Node) -> bool:
    if not m.plain(norm):
        return False
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
    centre = norm.op.name == "_layer_norm"
    args = (x, delta, weight, bias, dims, eps, centre, out)
    if not m.served("_add_norm", *args):
        return False
    made = m.make("_add_norm", args, (normed, total, None, None), norm)
    m.replace(gone, [made], add)
    return True
