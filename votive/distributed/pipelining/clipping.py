"""The norm of gradients that are on several stages. Knows stages and groups, not schedules."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...autograd.modes import no_grad
from ...nn.utils import clip_grads_with_norm_, get_total_norm
from ...ops.registry import F
from ...tensor import Tensor
from ..reduce_op import ReduceOp
from ..reductions import all_reduce
from .shared import shared_elsewhere
from .stage import PipelineStage


@no_grad()
def clip_grad_norm_(stages: Sequence[PipelineStage], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale the gradients of all stages so that their norm, taken together, is at most `max_norm`; gives the norm.

    The ranks of all stages call it with theirs, between `step` of the schedule and that of the optimizer. A weight that
    several stages share counts once.

    >>> from votive.distributed.pipelining import PipelineStage, clip_grad_norm_
    >>> def clip():
    ...     layer = votive.nn.Linear(1, 1, bias=False)
    ...     layer.weight.grad = votive.full((1, 1), 3.0 + votive.distributed.get_rank())
    ...     stage = PipelineStage(layer, votive.distributed.get_rank(), 2, "cpu")
    ...     return clip_grad_norm_([stage], 1.0).item(), round(layer.weight.grad.item(), 2)
    >>> votive.distributed.simulate(clip, 2)
    [(5.0, 0.6), (5.0, 0.8)]
    """
    if not stages:
        raise ValueError("clip_grad_norm_: takes the stages of this rank, at least one.")
    if norm_type == 0:
        raise ValueError("clip_grad_norm_: the norm of order 0 over stages is not supported; use another order.")
    order, group = float(norm_type), stages[0].group
    elsewhere = shared_elsewhere(stages)
    every = {id(p): p for s in stages for p in s.submod.parameters() if p.grad is not None}
    counted = [p.grad for key, p in every.items() if key not in elsewhere and p.grad is not None]
    device = stages[0].device
    own = get_total_norm(counted, order) if counted else F.zeros((), device=device)
    if math.isinf(order):
        total = own.float().clone()
        all_reduce(total, ReduceOp.MAX if order > 0 else ReduceOp.MIN, group)
    else:
        total = own.double().pow(order)
        all_reduce(total, group=group)
        total = total.pow(1.0 / order).float()
    clip_grads_with_norm_(list(every.values()), max_norm, total)
    return total
