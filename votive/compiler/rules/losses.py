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
