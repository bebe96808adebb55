"""Losses: they compute in a wide type whatever they read."""

from __future__ import annotations

from ...core import dtype as dt
from ..graph import Node
from .table import Match, rule


@rule("logits read as they are", "_cross_entropy_reduced", wants="_cross_entropy_reduced")
def narrow_logits(m: Match, loss: Node) -> bool:
    """Logits in 16 bits need not be widened in memory first: the sums are wide in any case."""
    cast = m.made_by(loss.args[0], "_copy_as")
    if not m.plain(loss) or cast is None or not m.only_user(cast.outs[0], loss):
        return False
    x = cast.args[0]
    args = (x, *loss.args[1:])
    if x.spec.dtype not in dt.HALF or loss.args[0].spec.dtype is not dt.float32 or loss.args[2] is not None:
        return False
    if not m.served("_cross_entropy_reduced", *args):
        return False
    made = m.make("_cross_entropy_reduced", args, loss.outs, loss)
    m.replace([cast, loss], [made], loss)
    return True


_LEAST = 32 << 20  # bytes of logits that are worth it


@rule("product and cross entropy", "_cross_entropy_reduced", wants="_cross_entropy_reduced")
def chunked_cross_entropy(m: Match, loss: Node) -> bool:
    """Logits that only a loss reads are computed in chunks, and their gradients with them: never are all in memory."""
    logits = loss.args[0]
    if not m.plain(loss) or loss.args[2] is not None or logits.spec.nbytes < _LEAST:
        return False
    if logits.spec.device.type != "cpu" or logits.spec.dtype not in (dt.float32, dt.float64):
        return False  # sums over chunks must not be rounded to fewer digits in between
    flat = m.made_by(logits, "_view")
    found = logits if flat is None else flat.args[0]
    product = m.made_by(found, "linear")
    if product is None or not m.only_user(found, loss if flat is None else flat) or not m.only_user(logits, loss):
        return False
    x, weight, bias = product.args
    if {x.spec.dtype, weight.spec.dtype} != {logits.spec.dtype} or weight.spec.ndim != 2:
        return False
    if logits.spec.shape != (x.spec.numel // x.spec.shape[-1], weight.spec.shape[0]):
        return False
    if loss.args[1].spec.ndim != 1 or not (x.spec.contiguous and weight.spec.contiguous):
        return False
    rows: list[Node] = []
    if x.spec.ndim != 2:
        rows = [m.make("_view", (x, (logits.spec.shape[0], x.spec.shape[-1])), (None,), product)]
        x = rows[0].outs[0]
    if any(not m.unused(v) for v in loss.outs[2:]):
        return False
    args = (x, weight, bias, loss.args[1], *loss.args[3:], m.gradients)
    made = m.make("_linear_cross_entropy", args, (*loss.outs[:2], None, None, None), loss)
    m.replace([product, *([] if flat is None else [flat]), loss], [*rows, made], loss)
    return True
